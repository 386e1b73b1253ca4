"""Makes the table of `tune_chords`, and measures what it finds for held-out tunes, and what hands do with it.

    python studies/tune_chords.py --tunes openewld.zip --store outputs/score_music/store --out outputs/tune_chords

A person copies `tune_chords.safetensors` from there to musictx/generate/. Lead sheets of one staff with at least
`LEAST` known symbols count. Those that the store of scores holds out are for validation and test, so no model of
scores has seen them; the table is counted in the others. A first trial looked at a fifth of all sheets, some held-out
ones among them: `SPREAD` from 1 to 50, and weights of the notes from 0.5 to 1.5, changed the share of right roots by
at most 0.015.

First the chords alone: how long a found root is the written one, and what share of the found notes is in the written
chord. Beside it: the nearest chord to the notes of each bar, and the tonic all the time. Then hands, drawn for the
first `BARS` bars of each tune as a file without symbols: free, led by what was found, by the nearest chords, and by the
written ones; what share of their time they are in the written chord, and dissonant with the tune. The rule: `accompany`
leads by what is found if the hands are in the written chord more of the time, with the whole interval of the
difference, by tunes of validation.

Three ways in which set-up alone could make a difference: 1. Chords of few notes are easily in any chord: shares are of
the hands' notes. 2. A chord near the tune's notes clashes less with it by its making: the written chords judge, too.
3. Any chords near the tune would do: hands are led by the nearest of each bar, too.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np
import timed
from safetensors.numpy import save_file
from score_tunes import dissonance
from shared import options

from musictx.analysis.bootstrap import interval
from musictx.analysis.key import key_of
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.files import write_json
from musictx.generate.control import Control
from musictx.generate.open_player import open_playing
from musictx.generate.requests import Accompany
from musictx.generate.score_chords import chords_between
from musictx.generate.score_tasks import task_of
from musictx.generate.tune_chords import KINDS, QUALITIES, TABLE, Table, chords_of_tune, places_of, quarters_of
from musictx.model.packaged import bundle_path
from musictx.model.tensors import tensors_hash
from musictx.music.harmony import Chord, chords_by_bar, parse_chord, pitch_class
from musictx.music.notation.chord_symbols import ChordSymbol
from musictx.music.notation.notation import Notation
from musictx.music.notation.write import to_musicxml
from musictx.music.read import score_of
from musictx.music.score import Score
from musictx.system import processor
from musictx.terminal import say
from musictx.tokenizers.score import ScoreTokenizer
from musictx.waiting import estimated

LEAST, BARS, DRAWN = 4, 16, 4
ABOUT = {  # the header of the table
    "corpus": "lead sheets of OpenEWLD, songs in the public domain",
    "licence": "MIT",
    "citation": "OpenEWLD, https://github.com/00sapo/OpenEWLD, Copyright (c) 2018 00sapo",
}
MEASURED = ("in the written chord", "dissonant", "notes a bar")


class Lead(NamedTuple):
    """A lead sheet: its score, and the root and quality of the chord written over each place, None for none."""

    name: str
    score: Notation
    written: list[tuple[int, int] | None]

    @property
    def lines(self) -> list[int]:
        return [*(bar.onset for bar in self.score.bars), self.score.end]


def lead_of(name: str, data: bytes) -> Lead | None:
    """The lead sheet of a file; None for other scores."""
    try:
        score, _ = score_of(data, Path(name))
    except UserError:
        return None
    if len(score.parts) != 1 or not score.parts[0].is_line or sum(bool(each.classes) for each in score.symbols) < LEAST:
        return None
    lead = Lead(name, score, [])
    for begin, end, _ in places_of(lead.lines):
        over = [each for each in score.symbols if each.onset <= (begin + end) // 2]
        lead.written.append(kind_of(over[-1]) if over else None)
    return lead


def kind_of(symbol: ChordSymbol | Chord) -> tuple[int, int] | None:
    """Root and quality of a chord as the table has them."""
    if symbol.classes is None:
        return None
    root = symbol.root if isinstance(symbol, Chord) else pitch_class(symbol.root[0], symbol.root[1:])
    steps = {(each - root) % 12 for each in symbol.classes}
    if 3 in steps and 4 not in steps:
        return root, 3 if 6 in steps and 7 not in steps else 1
    return root, 2 if 10 in steps else 0


def heard(lead: Lead, end: int | None = None) -> Score:
    """The tune, in units for seconds."""
    notes = [note for note in lead.score.parts[0].notes if end is None or note.onset < end]
    onset, length, pitch = np.array(sorted(notes), np.int64).T
    return Score(onset * 1.0, (onset + length) * 1.0, pitch, np.full(len(pitch), 1))


def count(leads: list[Lead]) -> Table:
    table = Table.empty()
    for lead in leads:
        tonic, mode = key_of(heard(lead)) or (0, "major")
        m, places, last = int(mode == "minor"), places_of(lead.lines), None
        quarters = quarters_of(lead.score.parts[0].notes, places)
        for place, chord, of_place in zip(places, lead.written, quarters, strict=True):
            now = None
            if chord is not None:
                root, kind = chord
                table.notes[kind] += np.roll(of_place, -root)
                now = (root - tonic) % 12 * KINDS + kind
                table.chords[m, now] += 1
            if now is not None and last is not None:
                table.stays[int(place.is_line), int(now == last)] += 1
                table.pairs[m, last, now] += now != last
            last = now
    return table


def found_in(lead: Lead, table: Table) -> dict[str, list[Chord]]:
    """The chords of each place, by each way to find them."""
    places, lines = places_of(lead.lines), np.array(lead.lines, np.float64)
    nearest = [parse_chord(name) for name in chords_by_bar(heard(lead), lines).split(" | ")]
    tonic, mode = key_of(heard(lead)) or (0, "major")
    bars = np.cumsum([place.is_line for place in places]) - 1
    return {
        "table": [chord for _, chord in chords_of_tune(lead.score.parts[0].notes, lead.lines, table)],
        "nearest": [nearest[bar] for bar in bars.tolist()],
        "tonic": [Chord(tonic, "m" if mode == "minor" else "")] * len(places),
    }


def agreement(lead: Lead, chords: list[Chord]) -> dict[str, float]:
    """Shares of the time with a written chord: the root is right; root and third are; a found note is in the chord."""
    total, out = 0, {"root": 0.0, "root and third": 0.0, "notes": 0.0}
    for (begin, end, _), written, chord in zip(places_of(lead.lines), lead.written, chords, strict=True):
        if written is None:
            continue
        long, mine, (root, kind) = end - begin, kind_of(chord), written
        assert mine is not None
        theirs = Chord(root, QUALITIES[kind]).classes
        total += long
        out["root"] += long * (chord.root == root)
        out["root and third"] += long * (chord.root == root and (mine[1] in (0, 2)) == (kind in (0, 2)))
        out["notes"] += long * len(chord.classes & theirs) / len(chord.classes)
    return {name: value / max(total, 1) for name, value in out.items()}


def hands(lead: Lead, ways: dict[str, Control], play: Any, folder: Path) -> dict[str, dict[str, float]]:
    """What the hands of the first bars are, by each way to lead them."""
    whole = lead.score.first_bars(min(BARS + lead.score.has_upbeat, len(lead.score.bars)))
    bare = replace(whole, symbols=(), source=None)
    path = folder / "tune.musicxml"
    path.write_bytes(to_musicxml(bare)[0])
    written = [None if each is None else Chord(each[0], QUALITIES[each[1]]) for each in lead.written]
    places, out = places_of([*(bar.onset for bar in whole.bars), whole.end]), dict[str, dict[str, float]]()
    for name, control in ways.items():
        player, tokenizer, own = play
        task = task_of(path, tokenizer, Accompany(control=control, variations=DRAWN))
        each = list[tuple[float, float, float]]()
        for music in task.draw(player, tokenizer, own=own):
            notes = [note for slot in music.added.values() for note in slot]
            within = sounds = 0
            for (begin, end, _), chord in zip(places, written, strict=False):
                for note in notes if chord else ():
                    long = max(min(note.offset, end) - max(note.onset, begin), 0)
                    sounds += long
                    within += long * (chord is not None and note.pitch % 12 in chord.classes)
            clashes = dissonance(whole.parts[0].notes, notes, whole.end)
            share = clashes["dissonant"] / max(clashes["both"], 1)
            each.append((within / max(sounds, 1), share, len(notes) / len(whole.bars)))
        out[name] = dict(zip(MEASURED, np.mean(each, axis=0).tolist(), strict=True))
    return out


def as_text(chords: list[Chord], lead: Lead, bars: int) -> str:
    """Chords of places as a person writes those of bars; an upbeat has none."""
    each = [
        [str(chord) for chord, place in zip(chords, places_of(lead.lines), strict=True) if begin <= place.begin < end]
        for (_, end), begin in zip(lead.score.spans, lead.lines[:-1], strict=True)
    ]
    return " | ".join(" ".join(bar) for bar in each[lead.score.has_upbeat : bars + lead.score.has_upbeat])


def means(rows: list[dict[str, float]]) -> dict[str, Any]:
    return {name: interval([row[name] for row in rows]) for name in rows[0]}


def main() -> None:
    parser = options(__doc__, "tunes", "store", "out", "test", out=Path("outputs/tune_chords"))
    parser.set_defaults(store=Path("outputs/score_music/store"))
    args = parser.parse_args()
    store, leads = Store(args.store, ScoreTokenizer.name), list[Lead]()
    with ZipFile(args.tunes) as archive:
        for name in estimated(sorted(name for name in archive.namelist() if name.endswith(".mxl")), "reading tunes"):
            if lead := lead_of(name, archive.read(name)):
                leads.append(lead)
    held = {split: {*store.split(split).names} for split in ("validation", "test")}
    train = [lead for lead in leads if not any(lead.name in names for names in held.values())]
    table = count(train)
    tensors = {name: getattr(table, name).astype(np.float32) for name in Table._fields}
    save_file(tensors, args.out / TABLE.name, ABOUT)
    opened = open_playing(bundle_path("score"))
    play, runs = (opened[0], opened[1], opened[2].sampling), timed.Runs(args.out / "tunes.json")
    facts: dict[str, Any] = {"processor": str(processor()), "counted in": len(train), "drawn": DRAWN, "bars": BARS}
    facts["score"] = tensors_hash(bundle_path("score"))[:16]
    for split in ("validation", "test")[: 1 + args.test]:
        chosen = [lead for lead in leads if lead.name in held[split]]
        rows = [
            runs.get(f"{facts['score']} {lead.name}", partial(row_of, lead, table, play, args.out))
            for lead in estimated(chosen, split)
        ]
        shares = {
            way: np.array([row["hands"][way][MEASURED[0]] for row in rows]) for way in ("found", "free", "nearest")
        }
        facts[split] = {"tunes": len(rows)} | {
            part: {way: means([row[part][way] for row in rows]) for way in rows[0][part]}
            for part in ("chords", "hands")
        }
        for way in ("free", "nearest"):
            facts[split][f"found above {way}"] = interval(shares["found"] - shares[way])
        say(f"{split}: {facts[split]}")
    facts["accompany leads"] = facts["validation"]["found above free"].low > 0
    write_json(args.out / "tune-chords.json", facts)


def row_of(lead: Lead, table: Table, play: Any, folder: Path) -> dict[str, Any]:
    found = found_in(lead, table)
    lines = lead.lines[lead.score.has_upbeat :]
    texts = {"found": as_text(found["table"], lead, BARS), "nearest": as_text(found["nearest"], lead, BARS)}
    texts["written"] = chords_between(lead.score, lines[: BARS + 1])
    ways = {"free": Control(strength=0.0)} | {name: Control(chords=text) for name, text in texts.items()}
    return {
        "chords": {name: agreement(lead, chords) for name, chords in found.items()},
        "hands": hands(lead, ways, play, folder),
    }


if __name__ == "__main__":
    with in_one_line():
        main()
