// The rolls: a click chooses a note and moves the player there; a line follows the sound.
const roll = () => {
  const picture = element.querySelector(".picture");
  if (!picture) return null;
  const data = JSON.parse(picture.dataset.roll);
  const phone = picture.querySelector("source"); // there is none where a score takes half of the width
  if (phone && matchMedia(phone.media).matches) data.boxes = data.narrow;
  return data;
};

function place(part, box, from_s, to_s) {
  const x = (s) => box.left + box.width * Math.min(Math.max((s - box.start_s) / (box.end_s - box.start_s), 0), 1);
  part.style.left = `${100 * x(from_s)}%`;
  part.style.width = `${100 * (x(to_s) - x(from_s))}%`;
  part.style.top = `${100 * box.top}%`;
  part.style.height = `${100 * box.height}%`;
}

// Lays parts of a kind over a span of time and removes the old ones.
function cover(kind, boxes, from_s, to_s) {
  element.querySelectorAll(`.${kind}`).forEach((old) => old.remove());
  for (const box of boxes) {
    if (from_s >= Math.min(to_s, box.end_s) || to_s <= box.start_s) continue;
    const part = document.createElement("i");
    part.className = kind;
    place(part, box, from_s, to_s);
    element.querySelector(".picture").append(part);
  }
}

// The music after the mark is veiled: new music takes its place.
let mark_s = null;
function mark(from_s) {
  const data = roll();
  mark_s = data && data.whole_s !== null ? from_s : null;
  cover("veil", mark_s === null ? [] : data.boxes.filter((b) => b.panel === data.chosen), mark_s, data?.whole_s);
}

// Where the mouse or finger is, in fractions of the picture.
function point(event) {
  const edge = element.querySelector(".picture").getBoundingClientRect();
  return { x: (event.clientX - edge.left) / edge.width, y: (event.clientY - edge.top) / edge.height };
}

const boxAt = (x, y) =>
  roll().boxes.find((b) => b.left <= x && x <= b.left + b.width && b.top <= y && y <= b.top + b.height);
const secondsAt = (box, x) => box.start_s + ((x - box.left) / box.width) * (box.end_s - box.start_s);

function follow() {
  const [data, audio, line] = [roll(), element.querySelector("audio"), element.querySelector(".playhead")];
  if (!data || !audio) return;
  const now = audio.currentTime;
  const box = data.boxes.find((b) => b.panel === data.chosen && b.start_s <= now && now <= b.end_s);
  line.hidden = !box || now === 0;
  if (box) place(line, box, now, now);
  line.style.width = "";
  if (!audio.paused) requestAnimationFrame(follow);
}

element.addEventListener("primer", (event) => mark(event.detail));
element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-take]");
  if (button) return trigger("choose", { take: Number(button.dataset.take) });
  if (!event.target.closest(".picture") || dragged) return;
  const { x, y } = point(event);
  const [data, audio] = [roll(), element.querySelector("audio")];
  const box = boxAt(x, y);
  if (!box) return;
  const seconds = secondsAt(box, x);
  const pitch = box.high - ((y - box.top) / box.height) * (box.high - box.low);
  if (box.panel === data.chosen && Number.isFinite(audio.duration)) audio.currentTime = Math.min(seconds, audio.duration);
  trigger("pick", { take: box.panel, seconds, pitch });
});
for (const name of ["play", "seeked"]) element.addEventListener(name, follow, true);

// A score shows its new bars, and a little of what comes before.
const ABOVE = 0.3; // of the height that is seen
element.addEventListener(
  "load",
  ({ target }) => {
    const score = target.closest(".score");
    if (score) score.scrollTop = score.dataset.new * score.scrollHeight - ABOVE * score.clientHeight;
  },
  true,
);
