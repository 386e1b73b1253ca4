// The rolls: a click chooses a note and moves the player there; a line follows what is heard.
const roll = () => {
  const picture = element.querySelector(".picture");
  return picture && JSON.parse(picture.dataset.roll);
};

function place(part, box, from_s, to_s) {
  const x = (s) => box.left + box.width * Math.min(Math.max((s - box.start_s) / (box.end_s - box.start_s), 0), 1);
  part.style.left = `${100 * x(from_s)}%`;
  part.style.width = `${100 * (x(to_s) - x(from_s))}%`;
  part.style.top = `${100 * box.top}%`;
  part.style.height = `${100 * box.height}%`;
}

function veil(event) {
  const data = roll();
  element.querySelectorAll(".veil").forEach((old) => old.remove());
  if (!data || data.whole_s === null) return;
  const { seconds, side } = event.detail;
  const outside = side === "end" ? [0, data.whole_s - seconds] : [seconds, data.whole_s];
  for (const box of data.boxes) {
    if (outside[0] >= Math.min(outside[1], box.end_s) || outside[1] <= box.start_s) continue;
    const part = document.createElement("i");
    part.className = "veil";
    place(part, box, ...outside);
    element.querySelector(".picture").append(part);
  }
}

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

element.addEventListener("motif", veil);
element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-take]");
  if (button) return trigger("choose", { take: Number(button.dataset.take) });
  const picture = event.target.closest(".picture");
  if (!picture) return;
  const edge = picture.getBoundingClientRect();
  const x = (event.clientX - edge.left) / edge.width;
  const y = (event.clientY - edge.top) / edge.height;
  const within = (b) => b.left <= x && x <= b.left + b.width && b.top <= y && y <= b.top + b.height;
  const [data, audio] = [roll(), element.querySelector("audio")];
  const box = data.boxes.find(within);
  if (!box) return;
  const seconds = box.start_s + ((x - box.left) / box.width) * (box.end_s - box.start_s);
  const pitch = box.high - ((y - box.top) / box.height) * (box.high - box.low);
  if (box.panel === data.chosen && Number.isFinite(audio.duration)) audio.currentTime = Math.min(seconds, audio.duration);
  trigger("pick", { take: box.panel, seconds, pitch });
});
for (const name of ["play", "seeked"]) element.addEventListener(name, follow, true);
