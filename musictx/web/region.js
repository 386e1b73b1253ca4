
// A region of time: two fields hold it, a drag over a roll writes them, and a box shows it.
const FAR = 4; // pixels: less is a click
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

// Fill waits until the new variation is chosen, or it would fill the old one.
const hold = (waits) => document.querySelectorAll("#region button").forEach((button) => (button.disabled = waits));

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
  if (box) drag = { panel: box.panel, x: event.clientX, from_s: secondsAt(box, x), before: region };
});
element.addEventListener("pointermove", (event) => {
  if (!event.buttons) drag = null; // the button was released elsewhere
  if (!drag || !event.isPrimary || !roll()) return;
  if (!dragged && Math.abs(event.clientX - drag.x) < FAR) return;
  if (!dragged) event.target.closest(".picture")?.setPointerCapture(event.pointerId);
  dragged = true;
  const to_s = reached(event);
  choose([Math.min(drag.from_s, to_s), Math.max(drag.from_s, to_s)]);
});
element.addEventListener("pointerup", () => {
  const [data, last] = [roll(), drag];
  drag = null;
  if (!dragged || !last || !data) return;
  frame();
  if (last.panel === data.chosen) return;
  hold(true);
  trigger("choose", { take: last.panel });
});
element.addEventListener("pointercancel", () => {
  const last = drag;
  drag = null;
  if (dragged && last) choose(last.before); // a finger scrolls
});
document.addEventListener("region", (event) => {
  if (drag) return;
  region = event.detail;
  frame();
});
watch("value", () => {
  drag = null; // its panel may be gone
  hold(false);
  frame();
});
