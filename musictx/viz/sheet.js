"use strict";
const form = document.getElementById("answers");
const sheet = document.querySelector("main").dataset.sheet;
const place = "musictx-listening-" + sheet; // in this browser
const radios = [...form.querySelectorAll("input[type=radio]")];
const questions = new Set(radios.map((radio) => radio.name));
const players = [...document.querySelectorAll("audio")];
let answers = {};
let key = null; // until the listener opens it
let kept = true;

function remember() {
  try { localStorage.setItem(place, JSON.stringify({ answers, opened: key !== null })); } catch { kept = false; }
}

function recall() {
  try { return JSON.parse(localStorage.getItem(place)) || {}; } catch { return {}; }
}

function show() {
  const answered = [...questions].filter((name) => name in answers).length;
  document.getElementById("progress").textContent = answered + " of " + questions.size + " questions answered." +
    (kept ? "" : " This browser does not keep them: download them before you leave the page.");
}

// the answers for each continuation; its source is null until the key is open
function rows() {
  return radios.filter((radio) => radio.name.startsWith("choice-")).map((radio) => {
    const piece = Number(radio.name.split("-")[1]), letter = radio.value;
    const rating = answers["rating-" + piece + "-" + letter];
    const chosen = answers[radio.name];
    return {
      piece, letter, rating: rating ? Number(rating) : null, chosen: chosen ? chosen === letter : null,
      source: key && key.sources[piece - 1][letter.charCodeAt(0) - 65],
    };
  });
}

function download() {
  const head = ["sheet", "listener", "piece", "letter", "rating", "chosen", "source", "key_opened"];
  const cell = (value) => '"' + String(value ?? "").replaceAll('"', '""') + '"';
  const lines = rows().map((row) => head.map((name) => cell({ sheet, listener: answers.listener, key_opened: key !== null, ...row }[name])).join(","));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([[head.join(","), ...lines].join("\r\n") + "\r\n"], { type: "text/csv" }));
  link.download = "answers-" + sheet + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function table(caption, head, lines) {
  const made = document.createElement("table");
  made.createCaption().textContent = caption;
  const top = made.createTHead().insertRow();
  for (const text of head) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    top.append(cell);
  }
  const body = made.createTBody();
  for (const line of lines) {
    const row = body.insertRow();
    for (const text of line) row.insertCell().textContent = text;
  }
  return made;
}

// the chance of finding at least `hits` of `n` by guessing one of `m`
function byChance(hits, n, m) {
  let term = 1, below = 0; // term: n over k, times the odds
  for (let k = 0; k < hits; k++) {
    below += term * (1 / m) ** k * (1 - 1 / m) ** (n - k);
    term *= (n - k) / (k + 1);
  }
  return Math.max(1 - below, 0);
}

function openKey() {
  const bytes = Uint8Array.from(atob(document.getElementById("key").textContent), (c) => c.charCodeAt(0));
  key = JSON.parse(new TextDecoder().decode(bytes));
  for (const input of form.querySelectorAll("input")) input.disabled = true;
  const all = rows(), m = key.sources[0].length;
  const chosen = all.filter((row) => row.chosen), hits = chosen.filter((row) => row.source === key.composer).length;
  const verdict = document.createElement("p");
  verdict.textContent = chosen.length === 0 ? "You have not said which one is the composer’s." :
    "You found the composer in " + hits + " of " + chosen.length + " pieces. Guessing finds " +
    (chosen.length / m).toFixed(1) + " on average, and as many as you or more with probability " +
    byChance(hits, chosen.length, m).toPrecision(2) + ".";
  const sources = [key.composer, ...key.sources[0].filter((name) => name !== key.composer).sort()];
  const bySource = sources.map((name) => {
    const ratings = all.filter((row) => row.source === name && row.rating !== null).map((row) => row.rating);
    const mean = ratings.length ? (ratings.reduce((a, b) => a + b) / ratings.length).toFixed(2) : "–";
    return [name, mean, ratings.length, chosen.filter((row) => row.source === name).length];
  });
  const letters = key.sources[0].map((_, i) => String.fromCharCode(65 + i));
  const byPiece = key.sources.map((names, i) => [i + 1, ...names, answers["choice-" + (i + 1)] || "–"]);
  const about = document.createElement("p");
  about.textContent = key.about;
  const scores = document.getElementById("scores");
  scores.replaceChildren(verdict,
    table("Your answers", ["who", "mean rating", "ratings", "taken for the composer"], bySource),
    table("Which is which", ["piece", ...letters, "you said"], byPiece), about);
  scores.hidden = false;
  document.getElementById("open").disabled = true;
  remember();
}

const saved = recall();
answers = saved.answers || {};
for (const radio of radios) radio.checked = answers[radio.name] === radio.value;
form.elements.listener.value = answers.listener || "";
show();
if (saved.opened) {
  document.getElementById("end").open = true;
  openKey();
}

form.addEventListener("input", () => { answers = Object.fromEntries(new FormData(form)); remember(); show(); });
form.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("open").addEventListener("click", () => { openKey(); document.getElementById("scores").focus(); });
document.getElementById("csv").addEventListener("click", download);
document.getElementById("again").addEventListener("click", () => {
  if (!confirm("Forget all answers on this page?")) return;
  try { localStorage.removeItem(place); } catch { /* nothing was kept */ }
  location.reload();
});
for (const player of players) {
  player.addEventListener("play", () => { for (const other of players) if (other !== player) other.pause(); });
}
