"""Tunes of ABC, as people write them."""

from collections import Counter

import pytest
from notated import ABC, notes

from musictx.music.notation.abc_tune import each_voice
from musictx.music.notation.read import read_notation


def test_each_voice_of_abc_is_a_part():
    assert len(each_voice(ABC, Counter())[0]) == 2
    notation, _ = read_notation(ABC.encode(), "abc")
    assert notes(notation) == [
        ((0, 24, 74), (24, 36, 71), (60, 12, 69), (72, 24, 66), (96, 72, 67)),
        ((0, 24, 55), (24, 48, 55), (72, 24, 50), (96, 72, 55)),
    ]
    assert [bar.onset for bar in notation.bars] == [0, 24, 96]


def abc_notes(body, head="X:1\nM:4/4\nL:1/4\n"):
    notation, losses = read_notation((head + body).encode(), "abc", "it")
    return [[(note.onset, note.pitch) for note in part.notes] for part in notation.parts], dict(losses)


OVER_BARS = [[(0, 60), (24, 62), (48, 64), (72, 65), (96, 67), (192, 69)]]
TWO_BESIDE = [[(0, 72), (48, 64), (96, 72), (96, 60), (144, 60), (144, 72)]]
UNEVEN = [[(0, 60), (0, 72), (96, 72), (96, 62), (192, 72), (240, 64)]]
OVERLAID = [[(0, 72), (96, 74), (144, 78), (144, 81)], [(0, 60), (96, 59), (96, 60), (96, 64)]]


@pytest.mark.parametrize(
    ("body", "voices", "losses"),
    [
        ("K:C\nCDE\nF:|\n", [[(0, 60), (24, 62), (48, 64), (72, 65)]], {"repeats": 1}),
        ("K:C\n[V:1]CD[V:2]EF|[V:1]EF|\n", [[(0, 60), (24, 62), (48, 64), (72, 65)], [(0, 64), (24, 65)]], {}),
        ("V:1\nV:2\nK:C\nC4|\nV:2\nE4|\n", [[(0, 60)], [(0, 64)]], {}),
        ("CD\n", [[(0, 60), (24, 62)]], {}),
        ("K:C\nC4|\n%%begintext align\nA carol,\nEE|\n%%endtext\nD4|\n\nA Dad made it\n", [[(0, 60), (96, 62)]], {}),
        ("K:C\nCDEF|\n\nG4|\n%%beginps\nA B\n", [[(0, 60), (24, 62), (48, 64), (72, 65), (96, 67)]], {}),
        ('K:C\nC4:|["2-9" D4|]\n', [[(0, 60), (96, 62)]], {"repeats": 1}),
        ("K:C\nC4 & E4|D4|\n", [[(0, 60), (0, 64), (96, 62)]], {}),
        (
            "K:C\nC4|z2 D2 & z2 ^F>F &\\\nG4|F4|\n",
            [[(0, 60), (96, 67), (144, 66), (144, 62), (180, 66), (192, 65)]],
            {},
        ),
        ("K:C\nc4 & x2E2|c2 & C4|c4 & C4|\n", TWO_BESIDE, {}),
        ("K:C\nc4 & C2|c4 & D8|c4 & z2E2|\n", UNEVEN, {}),
        ("K:C\nL:1/4\n(& CDEF|G4 & c4|d4 & e4|f4 &)|A4|\n", OVER_BARS, {"overlay": 2}),
        ("K:C\nC4 & D4 & E4 & F4 & G4|\n", [[(0, 60), (0, 62), (0, 64), (0, 65)]], {"overlay": 1}),
        ("K:C\nV:1 octave=1\nC4|D2[K:G]F2 & z2 A2|\nV:2\nC4|[CE]4- & B,4-|[CE]4 & B,4|\n", OVERLAID, {}),
        ("K:C\n[V:1]F2[K:G]F2|\n[V:1][M:1/4][L:1/8]F2|F2|\n", [[(0, 65), (48, 66), (96, 66), (120, 66)]], {}),
        (
            "K:C\nV:1\nZ2|C4|\nV:2\n[M:2/4]Z|[M:C]Z|E2[Q:1/4=60]E2|\n",
            [[(192, 60)], [(192, 64), (240, 64)]],
            {"uneven": 1},
        ),
        ("K:C\nC4|\n\nX:2\nK:C\nE4|\n\nX:3\nK:C\nE4|\n", [[(0, 60)]], {"tunes": 2}),
    ],
)
def test_abc_as_people_write_it(body, voices, losses):
    assert abc_notes(body) == (voices, losses)


@pytest.mark.parametrize(
    ("music", "pitches"),
    [
        ("K:C\n^CC=CC|C", [(0, 61), (1, 61), (2, 60), (3, 60), (4, 60)]),  # music21 ends it with its note
        ("K:F\nB=B[B,B]|B", [(0, 70), (1, 71), (2, 59), (2, 71), (3, 70)]),
        ("%%propagate-accidentals octave\nK:C\n^CcC", [(0, 61), (1, 72), (2, 61)]),
        ("I:propagate-accidentals not\nK:C\n^CC", [(0, 61), (1, 60)]),
        ('K:C\n^CD"A"C', [(0, 61), (1, 62), (2, 61)]),
        ("K:C\n^C2-|CC", [(0, 61), (3, 60)]),  # a tie takes it over the bar line
        ("K:C\n[^CE]-|[CE]C", [(0, 61), (0, 64), (2, 60)]),
        ("K:C\n[C-E]C-[CG]", [(0, 64), (0, 60), (2, 67)]),
        ("K:D exp _b\nFB^F", [(0, 65), (1, 70), (2, 66)]),
        ("K:HP\nFCG", [(0, 66), (1, 61), (2, 67)]),
        ("K:Dmix =c\nFCG", [(0, 66), (1, 60), (2, 67)]),
        ("K:C clef=bass\nC,", [(0, 48)]),  # music21 moves it by two octaves
        ("K:G bass\nF[K:bass]F", [(0, 66), (1, 66)]),
        ("K:Em treble-8\nF[K:Em treble]F", [(0, 54), (1, 66)]),
        ('K:C\nV:T clef="treble+8" octave=-2 name="bass"\n[CE]-[CE]C', [(0, 48), (0, 52), (2, 48)]),
        ("V:1 transpose=-2\nK:C\n^FF-|F^F", [(0, 64), (1, 64), (3, 64)]),
        ("K:Em^d\nFD", [(0, 66), (1, 63)]),
        ("K:d _b_e\nBE", [(0, 70), (1, 63)]),
        ("K:D exp _b^f\nBFC", [(0, 70), (1, 66), (2, 60)]),
        ("K:^f_B\nFB", [(0, 66), (1, 70)]),
        ("K:C % was treble-8\nC", [(0, 60)]),
        ("V:1 clef=treble % octave=-1\nK:C\nC", [(0, 60)]),
        ("V:T clef=treble-8\nK:G clef=treble\nG", [(0, 55)]),
        ("K:C octave=-1\n[CE]-|[CE]|\nS:Trad Galway\nZ:abc\nO:Eire\nC:me\nC", [(0, 48), (0, 52), (2, 48)]),
        ("%%MIDI program 2 40\nK:C\nC|\n\nX:2\n%%propagate-accidentals not\nK:C\n", [(0, 60)]),
    ],
)
def test_pitches_of_abc_as_its_standard_has_them(music, pitches):
    found, losses = abc_notes(music + "|\n")
    assert found == [[(24 * quarter, pitch) for quarter, pitch in pitches]]
    assert losses == ({"tunes": 1} if "X:2" in music else {})


def test_grace_notes_of_abc_take_no_time_and_lend_their_accidentals():
    assert abc_notes("K:C octave=-1\n{[^ce]}c-|{d}c2|\n") == ([[(0, 61)]], {"grace": 3})


def test_a_long_line_of_signs_takes_no_long_time():
    for sign in ("^", "{", '"', "!", "+"):
        assert abc_notes(f"K:C\nC4|{sign * 100_000}\n")[0][0][0] == (0, 60)


def test_sounds_of_abc_are_of_the_voice_before_them():
    head = "V:1\n%%MIDI program 73\nV:2\nI:MIDI= program 42\nK:C\nV:1\nC4|\nV:2\nE4|\n"
    notation, _ = read_notation(("X:1\nT:100\\% Rye\n" + head).encode(), "abc")
    assert ([part.program for part in notation.parts], notation.title) == ([73, 42], "100% Rye")


@pytest.mark.parametrize(
    ("music", "quarters"),
    [
        ("(10:8:10cdefgabc'd'e'|c4", [0.4] * 10 + [2]),
        ("(12cdefcd[fa]efcdz|c4", [1 / 12] * 12 + [2]),  # in the time of two
        ("(10:4:3c2d/2e d|c4", [0.4, 0.1, 0.2, 0.55, 2]),  # of three notes alone; the bar ends at a thirty-second
        ("(11:4cdefgabcdef(3cde|c4", [2 / 11] * 11 + [1 / 3] * 3 + [2]),
    ],
)
def test_tuplets_of_abc_may_have_any_number_of_notes(music, quarters):
    (part,) = read_notation(f"X:1\nM:none\nL:1/8\nK:C\n{music}|g4|\n".encode(), "abc")[0].parts
    onsets = {note.onset / 24 for note in part.notes}
    begins = [sum(quarters[:n]) for n in range(len(quarters) + 1) if n != 11 or "z" not in music]
    assert sorted(onsets) == pytest.approx(begins, abs=1 / 24)


def test_a_voice_of_abc_sounds_as_far_away_as_its_sound_says():
    def pitches(head, music):
        parts = read_notation(f"X:1\nL:1/4\n{head}K:C\n{music}\n".encode(), "abc")[0].parts
        return [[note.pitch for note in part.notes] for part in parts]

    for text in "%%MIDI transpose 2\nK:C\nC4|", "K:C\n%%MIDI transpose 2\nC4|":
        assert read_notation(f"X:1\nL:1/4\n{text}\n".encode(), "abc")[0].keys[-1].sharps == 2
    assert pitches("%%MIDI transpose 12\n", "C & E|\n%%MIDI transpose -2\nC|") == [[72, 76, 58]]
    assert pitches("V:1\n%%MIDI transpose -12\nV:2\n", "V:1\nC|\nV:2\nC|") == [[48], [60]]
    assert pitches("%%MIDI transpose 5\nV:1 transpose=-2\n", "V:1\nC|\nV:2\nC|") == [[58], [65]]
    assert pitches("", "C2[I:MIDI transpose 2]C2|") == [[60, 62]]


def test_chord_symbols_of_abc_sound_with_the_notes_under_them():
    tune = 'X:1\nL:1/4\nV:1 transpose=-2\nK:C\n"D7/F#"D2 "(A)"[I:MIDI transpose -9]A2|"N.C."C4|\n'
    notation, _ = read_notation(tune.encode(), "abc")
    chords = [(each.onset, each.root, each.kind, each.bass) for each in notation.symbols]
    assert chords == [(0, "C", "dominant", "E"), (48, "G", "major", ""), (96, "", "none", "")]
    assert [note.pitch for note in notation.parts[0].notes] == [60, 60, 51]
    tune = 'X:1\nL:1/4\nV:1 transpose=1\nK:C\n"^[V:2] solo""Gb"C4|"A#"D4| % note [I:MIDI program 9] dad\n'
    notation, _ = read_notation(tune.encode(), "abc")
    assert [each.root for each in notation.symbols] == ["G", "B"]
    assert ([note.pitch for note in notation.parts[0].notes], notation.parts[0].program) == ([61, 63], 0)


def test_voices_of_abc_have_their_names_and_sounds():
    head = '%%MIDI program 73\nV:1 name="Fl\\^ute a\\`a &eacute;"\nV:2 nm=Bass clef=bass\nK:C\n'
    music = "V:1\nC4|\nV:2\n%%MIDI program 1 32\nC,4|\n[V:1 name=A]D4|\n"
    notation, _ = read_notation(
        ('X:1\nT: \\\'Etude "a" \\ss % not this\nC:Fran\\ccois\n' + head + music).encode(), "abc"
    )
    assert [(part.name, part.program, len(part.notes)) for part in notation.parts] == [("A", 73, 2), ("Bass", 32, 1)]
    assert (notation.title, notation.composer) == ('Étude "a" ß', "François")


@pytest.mark.parametrize(
    ("tune", "program", "others"),
    [
        ("%%MIDI program 0\nK:C\nC4|[I:MIDI program 40]D4|", 0, 1),
        ("K:C\nC4|\n%%MIDI program 40\nD4|[I:MIDI program 9]E4|[I:MIDI program 40]F4|", 0, 2),
        ("%%MIDI program 40\nK:C\nz4|[I:MIDI program 73]D4|E4|[I:MIDI program 73]F4|", 73, 0),
        ('K:C\nV:1 name="Flute"\nC4|[I:MIDI program 40]D4|', 73, 1),
        ("%%MIDI program 73\nK:C\nC4|[I:MIDI program 40]", 73, 0),  # for no note
    ],
)
def test_a_sound_of_abc_in_the_middle_changes_nothing_before_it(tune, program, others):
    notation, losses = read_notation(f"X:1\nL:1/4\n{tune}\n".encode(), "abc")
    assert ([part.program for part in notation.parts], losses["sounds"]) == ([program], others)


@pytest.mark.parametrize("mark", ".~HIJKLMNOPQRSTUVWhijklmnopqrstuvw")
def test_decorations_of_one_letter_leave_the_notes(mark):
    music = 'K:C\n"Cm7"{}C {}D {}^F{}[GB]|\nw:a b c d\n'
    plain = read_notation(f"X:1\nL:1/4\n{music.format(*4 * [''])}".encode(), "abc")
    decorated = read_notation(f"X:1\nL:1/4\n{music.format(*4 * [mark])}".encode(), "abc")
    assert (decorated[0], decorated[1].total(), plain[1]) == (plain[0], 4, {})
    assert len(plain[0].parts[0].lyrics) == 4
    assert plain[0].symbols


def test_abc_without_a_unit_has_eighths_or_in_a_short_meter_sixteenths():
    assert abc_notes("K:C\nCDE|\n", "X:1\nM:3/4\n")[0] == [[(0, 60), (12, 62), (24, 64)]]
    assert abc_notes("K:C\nCDE|\n", "X:1\nM:2/4\n")[0] == [[(0, 60), (6, 62), (12, 64)]]


def test_meters_and_keys_within_abc_count_from_their_bar():
    text = "X:1\nM:(2+3)/8\nL:1/8\nK:C\nz|CDEFG|[M:C|]z8|Z2|[K:Em]F4\nE4|\nM:3/4\nCz|:[K:none]z2F4:|\n"
    notation, losses = read_notation(text.encode(), "abc")
    bars = [(bar.onset // 12, bar.numerator, bar.denominator) for bar in notation.bars]
    assert bars == [(0, 5, 8), (1, 5, 8), (6, 2, 2), (14, 2, 2), (22, 2, 2), (30, 2, 2), (38, 3, 4), (40, 3, 4)]
    assert [(key.onset // 12, key.sharps) for key in notation.keys] == [(0, 0), (30, 1), (40, 0)]
    assert [note.pitch for note in notation.parts[0].notes][-4:] == [66, 64, 60, 65]
    assert losses == {"repeats": 2, "sums": 1}


@pytest.mark.parametrize(
    ("head", "music", "beats", "sums"),
    [
        ("3+2+2/8", "C7|[M:(2 + 3)/8]C5|", [7, 5], 2),
        ("0+3/8", "V:1\nC3|[M:2+2/8]C4|\nV:2\nC3|[M:2+2/8]C4|", [3, 4], 1),  # of all voices the same one
        ("C|", "C8|", [2], 0),
    ],
)
def test_a_meter_of_abc_that_is_a_sum_becomes_one_number_and_is_counted(head, music, beats, sums):
    notation, losses = read_notation(f"X:1\nM:{head}\nL:1/8\nK:C\n{music}\n".encode(), "abc")
    assert ([bar.numerator for bar in notation.bars], losses["sums"]) == (beats, sums)


@pytest.mark.parametrize(("meter", "eighths"), [("6/8", 3), ("4/4", 2), ("3/4", 2), ("9/8", 3)])
def test_five_notes_take_the_time_of_three_in_compound_meters(meter, eighths):
    for tuplet in ("(5", "(5::5"):
        notation, losses = read_notation(f"X:1\nM:{meter}\nL:1/8\nK:C\n{tuplet}CDEFGA2|\n".encode(), "abc")
        assert notation.parts[0].notes[-1].onset == 12 * eighths
        assert set(losses) == {"finer"}


@pytest.mark.parametrize(
    ("music", "bars", "keys"),
    [
        ("M:3/4\nK:C\nCDE|FGA|]", [(0, 3, 4), (3, 3, 4)], [(0, 0)]),
        ("M:3/4\nK:C\nCDEFGA", [(0, 3, 4), (3, 3, 4)], [(0, 0)]),
        ("K:C\nCDEFGAB", [(0, 4, 4), (4, 4, 4)], [(0, 0)]),
        ("K:C\nC120|D4|", [(0, 4, 4), (120, 4, 4)], [(0, 0)]),
        ("M:6/8\nK:C\nC3|]", [(0, 6, 8)], [(0, 0)]),
        ("M:3/4\nK:C\nE|FGA||CDE||", [(0, 3, 4), (1, 3, 4), (4, 3, 4)], [(0, 0)]),
        ("M:6/8\nK:C\nCDE|x3|CDE|", [(0, 6, 8), (3, 6, 8), (6, 6, 8)], [(0, 0)]),
        ("M:4/4\nK:C\nCDEF|CD[K:D]EF|CDEF|", [(0, 4, 4), (4, 4, 4), (8, 4, 4)], [(0, 0), (6, 2)]),
        ("M:4/4\nK:C\nCDEF|CDEF[K:D]|CDEF|", [(0, 4, 4), (4, 4, 4), (8, 4, 4)], [(0, 0), (8, 2)]),
        ("M:4/4\nK:C\nCDEF[M:3/4]|CDE|", [(0, 4, 4), (4, 3, 4)], [(0, 0)]),
        ("M:4/4\nK:C\nCD[L:1/8]EFGA|C8|", [(0, 4, 4), (4, 4, 4)], [(0, 0)]),
        ("M:4/4\nV:1 transpose=-2\nK:D\nDEFG|[K:E]DEFG|", [(0, 4, 4), (4, 4, 4)], [(0, 0), (4, 2)]),
    ],
)
def test_bars_and_keys_of_abc_are_where_they_are_written(music, bars, keys):
    notation, losses = read_notation(f"X:1\nL:1/4\n{music}\n".encode(), "abc")
    assert [(bar.onset / 24, bar.numerator, bar.denominator) for bar in notation.bars] == bars
    assert [(key.onset / 24, key.sharps) for key in notation.keys] == keys
    assert not losses


@pytest.mark.parametrize(
    ("field", "tempo", "wordy"),
    [
        ("1/4 = 100", 100, 0),
        ("C=120", 60, 0),
        ("120", 60, 0),
        ("1/4=ca. 60", 60, 0),
        ("3/8=40-44", 60, 0),
        ('"Andante"', 120, 1),
    ],
)
def test_tempi_of_abc(field, tempo, wordy):
    for text in (f"Q:{field}\nK:C\nV:1\nC8|\nV:2\nE8|", f"K:C\n[Q:{field}]C8|"):
        notation, losses = read_notation(f"X:1\nM:4/4\nL:1/8\n{text}\n".encode(), "abc")
        assert [each.quarters_a_minute for each in notation.tempi] == [tempo]
        assert losses["wordy"] == wordy


@pytest.mark.parametrize(
    ("voices", "names", "programs"),
    [
        ("S A T B", ["Soprano", "Alto", "Tenor", "Bass"], [53] * 4),
        ("S A", ["Soprano", "Alto"], [53] * 2),
        ("Alto Tenor Bass", ["Alto", "Tenor", "Bass"], [53] * 3),
        ("A B", ["A", "B"], [0, 0]),
        ("T B", ["T", "B"], [0, 0]),
        ("Tune Bass", ["Tune", "Bass"], [0, 0]),
        ("Flute S1V1 2 T2", ["Flute", "", "", "T2"], [73, 0, 0, 0]),
        ("S1 S2 A T B", ["S1", "S2", "Alto", "Tenor", "Bass"], [53] * 5),
    ],
)
def test_a_voice_without_a_name_has_that_of_its_field(voices, names, programs):
    music = "".join(f"V:{each}\nC4|\n" for each in voices.split())
    parts = read_notation(f"X:1\nK:C\n{music}".encode(), "abc")[0].parts
    assert [(part.name, part.program) for part in parts] == [*zip(names, programs, strict=True)]


def test_voices_of_abc_are_in_the_order_of_the_score():
    text = 'X:1\n%%score {RH | (LH)}\nV:LH name="Left\\nhand"\nV:RH\nK:C\n[V:LH]C|\n[V:RH]c|\n'
    notation, _ = read_notation(text.encode(), "abc")
    assert [part.name for part in notation.parts] == ["", "Left hand"]


def test_bars_without_a_meter_have_that_of_their_length():
    notation, _ = read_notation(b"X:1\nM:none\nL:1/4\nK:C\nC|CDE|CDEF|C/D/E/|CD|\n", "abc")
    assert [(bar.numerator, bar.denominator) for bar in notation.bars] == [(3, 4), (3, 4), (4, 4), (3, 8), (2, 4)]
    kern, _ = read_notation(b"**kern\n=1\n4c\n4d\n4e\n=2\n8c\n=3\n*-\n", "humdrum")
    assert [(bar.onset, bar.numerator, bar.denominator) for bar in kern.bars] == [(0, 3, 4), (72, 3, 4)]


def test_a_tempo_of_abc_counts_from_where_it_is_written():
    text = 'X:1\nM:4/4\nL:1/4\nQ:100\nK:C\nCDEF|[Q:1/4=60]GAB2|C4|\nQ:"Lento" 1/8 3/8=40\nz2 CD|[Q:140]E4|\n'
    notation, losses = read_notation(text.encode(), "abc")
    tempi = [(each.onset / 96, each.quarters_a_minute) for each in notation.tempi]
    assert tempi == [(0, 100), (1, 60), (3, 80), (4, 140)]
    assert not losses


@pytest.mark.parametrize("before", ["", "|", "|:", "z|", "||"])
@pytest.mark.parametrize("voices", [1, 2])
def test_bars_of_abc_count_from_the_first_whole_one(before, voices):
    lines = "".join(f"V:{n}\n{before}C|D E F|G A B|c2 c|d e|]\n" for n in range(voices))
    assert read_notation(f"X:1\nM:3/4\nL:1/4\nK:C\n{lines}".encode(), "abc")[0].numbers == [
        *range(5 + (before == "z|"))
    ]
