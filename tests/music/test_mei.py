"""MEI as notation programs write it."""

import pytest
from mei_texts import END, HEAD, REST, heard, layer, measure, note, read

from musictx.errors import MidiError
from musictx.music.notation.read import read_notation


def test_staves_keys_meters_and_names_in_elements():
    change = '<scoreDef><keySig sig="1f"/><meterSig count="1" unit="4"/></scoreDef>'
    notation, losses = read(
        measure(layer(note("c"), note("d")), REST, REST), change, measure(REST, REST, layer(note("e", 4)), n=2)
    )
    assert heard(notation) == [[(0, 12, 60), (12, 12, 62)], [], [(24, 24, 64)]]
    assert [(part.name, part.program) for part in notation.parts] == [("Voice", 68), ("Piano", 0), ("Piano", 0)]
    assert [(key.onset, key.sharps) for key in notation.keys] == [(0, 2), (24, -1)]
    assert [tuple(bar) for bar in notation.bars] == [(0, 2, 8), (24, 1, 4)]
    assert (notation.title, notation.composer, losses) == ("A song", "A. B.", {})


def test_music_in_sections_and_endings_within_each_other():
    first, second, third = (measure(layer(note(name, 4)), REST, REST) for name in "cde")
    inside = f'<section xml:id="a">{first}<ending n="1">{second}</ending></section><sb/><ending n="2">{third}</ending>'
    assert heard(read(inside)[0])[0] == [(0, 24, 60), (24, 24, 62), (48, 24, 64)]


def test_ties_between_staves_layers_and_measures():
    chord = '<chord dur="4"><note xml:id="c4" pname="c" oct="4"/><note xml:id="e4" pname="e" oct="4"/></chord>'
    tie = '<tie startid="#c8" endid="#c16"/><tie startid="#c16" endid="#c4"/>'
    notation, _ = read(
        measure(layer(note("d"), note("c")), REST, REST), measure(layer(note("c", 16)), REST, REST, signs=tie)
    )
    assert heard(notation)[0] == [(0, 12, 62), (12, 18, 60)]
    tie = '<tie startid="#c8" endid="#c4"/>'
    notation, _ = read(measure(layer(note("d"), note("c")), REST, REST, signs=tie), measure(layer(chord), REST, REST))
    assert heard(notation)[0] == [(0, 12, 62), (12, 36, 60), (24, 24, 64)]


def test_cue_notes_are_silent_octaves_are_heard_and_notes_lie_on_their_staff():
    notes = layer(note("d", cue="true"), note("e", oct_ges=5)), layer(note("f", staff=3), note("g"))
    notation, losses = read(measure(*notes, layer('<clef sameas="#x"/>', note("c", 4)), signs='<octave dis="8"/>'))
    assert heard(notation) == [[(12, 12, 76)], [(12, 12, 67)], [(0, 12, 65), (0, 24, 60)]]
    assert losses == {"cue": 1, "spans": 1}


def test_clefs_change_where_the_next_note_of_their_staff_begins():
    bass, alto = '<clef shape="F" line="4"/>', '<clef shape="C" line="3"/>'
    low = '<clef shape="G" line="2" dis="8" dis.place="below"/>'
    define = '<scoreDef><staffGrp><staffDef n="3"><clef shape="F" line="4"/></staffDef></staffGrp></scoreDef>'
    beam = "<beam>" + note("c", 16) + low + note("d", 16, cue="true") + "</beam>"
    notation, losses = read(
        measure(layer(note("c"), bass, note("d")), REST, layer(note("g"), note("a"), alto)),
        measure(REST, REST, REST, n=2),
        define,
        measure(layer(beam, note("e")), REST, layer(note("f"), note("a"), bass), n=3),
    )
    first, _, third = ([tuple(clef) for clef in part.clefs] for part in notation.parts)
    assert first == [(12, "F", 4, 0), (54, "G", 2, -1)]
    assert third == [(24, "C", 3, 0), (48, "F", 4, 0)]
    assert losses == {"cue": 1, "clefs": 1}


def test_clefs_before_rests_of_bars_and_clefs_that_no_pitch_has():
    bass, other = '<clef shape="F" line="4"/>', '<clef shape="perc"/><clef shape="G" line="9"/><clef sameas="#x"/>'
    notation, losses = read(
        measure(layer(note("c", 4)), REST, REST),
        measure(layer(bass, "<mRpt/>"), layer(bass, '<multiRest num="2"/>'), layer(other, note("c", 4)), n=2),
        measure(layer(note("c", 4)), REST, REST, n=3),
    )
    assert [[clef.onset for clef in part.clefs if clef.sign == "F"] for part in notation.parts] == [[24], [24], []]
    assert losses == {"clefs": 2}


def test_tempi_chord_symbols_and_words_of_one_syllable():
    sung = '<verse n="1"><syl wordpos="s" con="u">one</syl></verse>'
    sung += '<verse n="2"><syl con="u" wordpos="i"><rend>a</rend></syl></verse>'
    ends = '<verse n="2"><syl wordpos="t" con="u">men</syl></verse>'
    signs = '<tempo tstamp="2" midi.bpm="96"/><tempo midi.bpm="fast"/><harm tstamp="1">B♭Maj7/D</harm>'
    signs += '<harm startid="#e8">C<rend>m</rend></harm><harm tstamp="1">Fine</harm><dynam>p</dynam><dir>dolce</dir>'
    notation, losses = read(measure(layer(note("d", inside=sung), note("e", inside=ends)), REST, REST, signs=signs))
    assert [(x.onset, x.root, x.kind, x.text, x.bass) for x in notation.symbols] == [
        (0, "Bb", "major-seventh", "Maj7", "D"),
        (12, "C", "minor", "m", ""),
    ]
    assert [(tempo.onset, tempo.quarters_a_minute) for tempo in notation.tempi] == [(0, 96)]
    assert [(x.onset, x.text, x.begins, x.ends) for x in notation.parts[0].lyrics] == [
        (0, "one", True, True),
        (0, "a", True, False),
        (12, "men", False, True),
    ]
    assert losses == {"symbols": 1, "dynamics": 1, "words": 1, "wordy": 1}


def test_meters_and_keys_change_between_sections():
    change = '</section><scoreDef><keySig sig="mixed"/><meterSig count="3" unit="4"/></scoreDef><section>'
    bar = measure(layer(note("c", 4)), REST, REST)
    notation, _ = read(bar, change, measure(layer(note("d", 2, dots=1)), REST, REST))
    assert [tuple(bar) for bar in notation.bars] == [(0, 2, 8), (24, 3, 4)]
    assert [key.sharps for key in notation.keys] == [2]


def test_cue_notes_within_beams_tuplets_and_graces_keep_the_time():
    cues = f'<tuplet num="3" numbase="2"><beam>{note("c", 8, cue="true") * 3}</beam></tuplet>'
    music = layer(cues, f'<beam cue="true">{note("c", 16)}</beam>', note("f", 8, "<dot/>", cue="true"), note("d", 1))
    grace = note("e", 8, cue="true", grace="acc")
    notation, losses = read(measure(music, layer(grace, note("g", 1)), REST))
    assert heard(notation) == [[(48, 96, 62)], [(0, 96, 67)], []]
    assert losses == {"cue": 6}


def test_bars_of_rest_repeated_bars_and_tremolos():
    rests = measure(*['<layer><multiRest num="3"/></layer>'] * 3)
    tremolo = "<bTrem>" + note("c") + "</bTrem><fTrem>" + note("d") + note("e") + "</fTrem>"
    again = measure("<layer><mRpt/></layer>", REST, REST)
    notation, losses = read(rests, measure(layer(tremolo), REST, REST), again)
    music = [(0, 12, 60), (12, 6, 62), (18, 6, 64)]
    assert heard(notation)[0] == [(onset + at, length, pitch) for at in (72, 96) for onset, length, pitch in music]
    assert losses == {"ornaments": 2}
    many = "<layer><multiRest num='99999'/></layer>"
    with pytest.raises(MidiError, match="too long"):
        read(*[measure(many, many, many)] * 9)


def test_names_speeds_and_places_of_signs():
    head = HEAD.replace("<scoreDef>", '<scoreDef midi.bpm="90">').replace(">Voice<", ">Cantus II<")
    head = head.replace('<staffDef n="2">', '<staffDef n="2"><label>Upper</label>')
    incipit = "<incip><score><section><measure n='1'><tempo midi.bpm='30'/></measure></section></score></incip>"
    signs = '<tempo tstamp="2" mm="60" mm.unit="2"/><harm startid="#r">Dm</harm><tempo tstamp="nan" midi.bpm="inf"/>'
    music = measure(layer(note("c"), '<rest xml:id="r" dur="8"/>'), REST, REST, signs=signs)
    text = head.replace("</fileDesc>", f"</fileDesc>{incipit}") + music + END
    notation, _ = read_notation(text.encode(), "mei")
    assert [part.name for part in notation.parts] == ["Cantus II", "Upper", "Piano"]
    assert [tuple(tempo) for tempo in notation.tempi] == [(0, 90, 0), (12, 120, 48)]
    assert [(symbol.onset, symbol.root) for symbol in notation.symbols] == [(12, "D")]


@pytest.mark.parametrize("name", ["EbMaj7", "EbMAJ7", "Eb∆7", "Ebmaj7"])
def test_kinds_of_chords_in_capitals(name):
    signs = f"<harm tstamp='1'>{name}</harm>"
    assert read(measure(layer(note("d", 4)), REST, REST, signs=signs))[0].symbols[0].kind == "major-seventh"


@pytest.mark.parametrize("number", ["1a", "X1", "", "12-13", " 3 "])
def test_a_bar_may_have_any_number(number):
    bars = [measure(layer(note("c", 1)), n=number), measure(layer(note("d", 1)), n=2)]
    assert read(*bars) == read(bars[0].replace(f'n="{number}"', 'n="1"', 1), bars[1])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('key.sig="2s"', 'key.sig="2s" key.mode="peregrinus"'),
        ('meter.count="4"', 'meter.count="4.0"'),
        ('trans.semi="-2" trans.diat="-1"', 'trans.semi="-2.0"'),
        ('trans.semi="-2" trans.diat="-1"', 'trans.semi="-2" trans.diat="-1.0"'),
        ('right="dbl"', 'right="dbldashed"'),
        ('right="dbl"', 'right="heavy"'),
        ('accid="sd"', 'accid="1qs"'),
        ('artic="stacc"', 'artic="scoop"'),
    ],
)
def test_a_number_or_sign_in_another_form_is_the_same(old, new):
    text = f"""<mei xmlns="http://www.music-encoding.org/ns/mei"><music><body><mdiv><score>
<scoreDef meter.count="4" meter.unit="4" key.sig="2s"><staffGrp><staffDef n="1" lines="5"
trans.semi="-2" trans.diat="-1"/></staffGrp></scoreDef>
<section>{measure(layer(note("c", 1))).replace("<measure", '<measure right="dbl"')}
{measure(layer(note("d", 1, accid="sd", artic="stacc")), n=2)}</section></score></mdiv></body></music></mei>"""
    plain = read_notation(text.encode(), "mei")
    assert plain[1] == {"between": 1, "doubles": 1, "articulations": 1}
    assert text.count(old) == 1
    assert read_notation(text.replace(old, new).encode(), "mei") == plain


@pytest.mark.parametrize("place", ["label", "label.abbr"])
def test_a_group_of_staves_is_named_by_an_attribute_or_an_element(place):
    element = {"label": "<label>Piano</label>", "label.abbr": "<labelAbbr>Piano</labelAbbr>"}[place]
    text = """<mei xmlns="http://www.music-encoding.org/ns/mei"><music><body><mdiv><score><scoreDef><staffGrp{}>{}
<staffDef n="1" lines="5"/><staffDef n="2" lines="5"/></staffGrp></scoreDef><section>{}</section></score></mdiv></body>
</music></mei>"""
    bar = measure(layer(note("c", 1)), layer(note("e", 1)))
    first, second = (
        read_notation(text.format(*each, bar).encode(), "mei")[0] for each in ((f' {place}="Piano"', ""), ("", element))
    )
    assert first == second
    assert [part.abbreviation if "abbr" in place else part.name for part in first.parts] == ["Piano"] * 2


def test_signs_that_are_left_out_are_counted_and_hidden_notes_are_silent():
    signs = "".join(
        f'<{each} tstamp="1" staff="1"/>' for each in ("trill", "arpeg", "fermata", "fing", "octave", "reh")
    )
    signs += '<pedal dir="down"/><pedal dir="up"/><harm><fb><f>6</f></fb></harm>'
    bar = measure(layer(note("c", 2), note("d", 2, visible="false")), signs=signs)
    notation, losses = read(bar)
    assert [each.pitch for each in notation.parts[0].notes] == [60]
    assert losses == {"ornaments": 2, "articulations": 2, "spans": 2, "words": 1, "figures": 1, "hidden": 1}
