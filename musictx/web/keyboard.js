// Two octaves to play with the mouse, a finger, the computer's keys or a MIDI keyboard. Sends [on_s, off_s, pitch, velocity].
const LOW = 55, HIGH = 79, KEYS = "awsedftgyhujkolp";
const BLACK = [1, 3, 6, 8, 10];
const keys = element.querySelector(".keys");
const played = element.querySelector(".played");
let notes = [], held = new Map(), sound = null;

const whites = [];
for (let pitch = LOW; pitch <= HIGH; pitch++) if (!BLACK.includes(pitch % 12)) whites.push(pitch);
for (let pitch = LOW; pitch <= HIGH; pitch++) {
  const key = document.createElement("div");
  const black = BLACK.includes(pitch % 12);
  const before = whites.filter((white) => white < pitch).length;
  key.className = black ? "key black" : "key";
  key.dataset.pitch = pitch;
  key.style.left = `${(100 * (before - (black ? 0.32 : 0))) / whites.length}%`;
  key.style.width = `${(100 * (black ? 0.64 : 1)) / whites.length}%`;
  keys.append(key);
}

function show() {
  played.textContent = notes.length ? `${notes.length} note${notes.length > 1 ? "s" : ""}` : "play a phrase";
}

function tone(pitch, velocity) {
  sound = sound || new AudioContext();
  const [wave, gain] = [sound.createOscillator(), sound.createGain()];
  wave.type = "triangle";
  wave.frequency.value = 440 * 2 ** ((pitch - 69) / 12);
  gain.gain.setValueAtTime((0.25 * velocity) / 127, sound.currentTime);
  gain.gain.exponentialRampToValueAtTime(0.001, sound.currentTime + 2.5);
  wave.connect(gain).connect(sound.destination);
  wave.start();
  wave.stop(sound.currentTime + 2.5);
  return () => gain.gain.setTargetAtTime(0, sound.currentTime, 0.05);
}

function press(pitch, velocity) {
  if (held.has(pitch)) return;
  held.set(pitch, { on: performance.now() / 1000, velocity, hush: tone(pitch, velocity) });
  keys.querySelector(`[data-pitch="${pitch}"]`)?.classList.add("down");
}

function release(pitch) {
  const note = held.get(pitch);
  if (!note) return;
  held.delete(pitch);
  note.hush();
  notes.push([note.on, performance.now() / 1000, pitch, note.velocity]);
  keys.querySelector(`[data-pitch="${pitch}"]`)?.classList.remove("down");
  show();
}

const pointers = new Map();
keys.addEventListener("pointerdown", (event) => {
  const pitch = Number(event.target.dataset.pitch);
  if (!pitch) return;
  pointers.set(event.pointerId, pitch);
  press(pitch, 80);
});
for (const name of ["pointerup", "pointercancel"])
  window.addEventListener(name, (event) => {
    release(pointers.get(event.pointerId));
    pointers.delete(event.pointerId);
  });

const pitchOf = (event) => (KEYS.includes(event.key) && event.key.length === 1 ? 60 + KEYS.indexOf(event.key) : null);
const typing = (event) =>
  !keys.offsetParent || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea");
window.addEventListener("keydown", (event) => {
  const pitch = pitchOf(event);
  if (pitch !== null && !event.repeat && !typing(event)) press(pitch, 80);
});
window.addEventListener("keyup", (event) => {
  const pitch = pitchOf(event);
  if (pitch !== null) release(pitch);
});

function hear(event) {
  const [status, pitch, velocity] = event.data;
  const kind = status & 0xf0;
  if (kind === 0x90 && velocity > 0) press(pitch, velocity);
  else if (kind === 0x80 || kind === 0x90) release(pitch);
}

async function connect() {
  if (!navigator.requestMIDIAccess) {
    played.textContent = "this browser has no WebMIDI";
    return;
  }
  try {
    const midi = await navigator.requestMIDIAccess();
    const listen = () => midi.inputs.forEach((input) => (input.onmidimessage = hear));
    midi.onstatechange = listen;
    listen();
    const names = [...midi.inputs.values()].map((input) => input.name);
    played.textContent = names.length ? `listening to ${names.join(", ")}` : "no MIDI keyboard is connected";
  } catch {
    played.textContent = "the browser does not allow MIDI here";
  }
}

element.addEventListener("click", (event) => {
  const action = event.target.dataset.action;
  if (action === "midi") connect();
  if (action !== "take" && action !== "clear") return;
  if (action === "take") {
    [...held.keys()].forEach(release);
    trigger("take", { notes });
  }
  notes = [];
  show();
});
show();
