
// A region of time: two fields have it, a drag over a roll writes them, and a box shows it. Music with a beat has borders
// at its beats, unless Alt is down.
const FAR = 4; // pixels: less is a click
const NEAR = 8; // pixels: so near to the mark, it is dragged
let region = [null, null];
let drag = null;
let dragged = false; // the click that ends a drag does not count

function frame() {
  const [data, [from_s, to_s]] = [roll(), region];
  if (!data) return;
  const panel = drag ? drag.panel : data.chosen;
  cover("region", from_s === null || to_s === null ? [] : data.boxes.filter((b) => b.panel === panel), from_s, to_s);
}

function choose(chosen) {
  region = chosen;
  frame();
  document.querySelectorAll("#region input").forEach((field, k) => {
    field.value = region[k] === null ? "" : region[k].toFixed(2);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

// The slider has the mark, and gives it back by the event "primer".
function moveMark(from_s) {
  const field = document.querySelector("#primer input[type=number]");
  field.value = from_s.toFixed(2);
  field.dispatchEvent(new Event("input", { bubbles: true }));
  mark(from_s);
}

// Fill waits until the new variation is chosen, or it would fill the old one.
const lock = (waits) => document.querySelectorAll("#region button").forEach((button) => (button.disabled = waits));

// The beat nearest to a second; the second itself in music without a beat, and under Alt.
function snap(seconds, event, end_s) {
  const beats = event.altKey ? [] : roll().beats;
  const nearest = beats.reduce((best, b) => (Math.abs(b - seconds) < Math.abs(best - seconds) ? b : best), Infinity);
  return Math.min(Number.isFinite(nearest) ? nearest : seconds, end_s);
}

// From beat to beat, at least one.
function spanned(from_s, to_s, event, end_s) {
  const [a, b] = [Math.min(from_s, to_s), Math.max(from_s, to_s)].map((s) => snap(s, event, end_s));
  if (a < b) return [a, b];
  const next = roll().beats.find((beat) => beat > a);
  return [a, Math.min(next ?? a, end_s)];
}

// The second under the pointer in the panel's nearest row, within the ends of that row.
function reached(event) {
  const { x, y } = point(event);
  const away = (b) => Math.max(b.top - y, y - b.top - b.height);
  const rows = roll().boxes.filter((b) => b.panel === drag.panel);
  const row = rows.reduce((best, b) => (away(b) < away(best) ? b : best));
  return Math.min(Math.max(secondsAt(row, x), row.start_s), row.end_s);
}

element.addEventListener("pointerdown", (event) => {
  dragged = false;
  if (!event.isPrimary || event.button !== 0 || !event.target.closest(".picture")) return;
  const { x, y } = point(event);
  const box = boxAt(x, y);
  if (!box) return;
  const pixel_s = (box.end_s - box.start_s) / box.width / element.querySelector(".picture").clientWidth;
  const marks = mark_s !== null && Math.abs(secondsAt(box, x) - mark_s) < NEAR * pixel_s;
  drag = { panel: box.panel, x: event.clientX, from_s: secondsAt(box, x), before: region, marks, mark_s };
});
element.addEventListener("pointermove", (event) => {
  if (!event.buttons) drag = null; // the button was released elsewhere
  if (!drag || !event.isPrimary || !roll()) return;
  if (!dragged && Math.abs(event.clientX - drag.x) < FAR) return;
  if (!dragged) event.target.closest(".picture")?.setPointerCapture(event.pointerId);
  dragged = true;
  const [to_s, end_s] = [reached(event), Math.max(...roll().boxes.map((b) => b.end_s))];
  if (drag.marks) return moveMark(snap(to_s, event, Math.min(end_s, roll().whole_s)));
  choose(spanned(drag.from_s, to_s, event, end_s));
});
element.addEventListener("pointerup", () => {
  const [data, last] = [roll(), drag];
  drag = null;
  if (!dragged || !last || !data || last.marks) return;
  frame();
  if (last.panel === data.chosen) return;
  lock(true);
  trigger("choose", { take: last.panel });
});
element.addEventListener("pointercancel", () => {
  const last = drag;
  drag = null;
  if (!dragged || !last) return;
  last.marks ? moveMark(last.mark_s) : choose(last.before); // a finger scrolls
});
document.addEventListener("region", (event) => {
  if (drag) return;
  region = event.detail;
  frame();
});
watch("value", () => {
  if (!element.querySelector(".picture")) return; // a sketch of what comes
  drag = null; // its panel may be gone
  lock(false);
  frame();
  mark(roll()?.from_s ?? null);
});
addEventListener("resize", () => { // the picture may be another one
  frame();
  mark(mark_s);
});
