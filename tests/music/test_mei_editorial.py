"""One reading is played of the several that editors of MEI mark."""

import pytest
from mei_texts import REST, heard, layer, measure, note, read

CHOICE = "<choice><sic>{e}</sic><corr>{d}</corr></choice>"


@pytest.mark.parametrize(
    "marked",
    [
        CHOICE,
        "<choice><orig>{e}</orig><reg>{d}</reg></choice>",
        "<choice><abbr>{e}</abbr><expan>{d}</expan></choice>",
        "<choice><orig>{d}</orig><sic>{e}</sic></choice>",
        "<app><rdg>{e}</rdg><lem>{d}</lem></app>",
        "<app><rdg>{d}</rdg><rdg>{e}</rdg></app>",
        "<subst><add>{d}</add><del>{e}</del></subst>",
        "<restore><del>{d}</del></restore><del>{e}</del>",
        "<supplied><unclear>{d}</unclear></supplied>",
        "<orig>{d}</orig>",
        f"<app><lem>{CHOICE}</lem></app>",
    ],
)
def test_one_reading_is_played(marked):
    notation, losses = read(measure(layer(note("c"), marked.format(d=note("d"), e=note("e"))), REST, REST))
    assert (heard(notation)[0], losses) == ([(0, 12, 60), (12, 12, 62)], {})


@pytest.mark.parametrize(
    ("opens", "closes"),
    [("<beam>", "</beam>"), ('<tuplet num="1" numbase="1">', "</tuplet>"), ('<chord dur="4">', "</chord>")],
)
def test_readings_within_beams_tuplets_and_chords(opens, closes):
    music = opens + CHOICE.format(d=note("d", 4), e=note("e", 4)) + closes
    assert heard(read(measure(layer(music), REST, REST))[0])[0] == [(0, 24, 62)]


def around(staff):
    return f'<measure n="1">{staff}<staff n="2">{REST}</staff><staff n="3">{REST}</staff></measure>'


def test_readings_of_layers_staves_measures_sections_and_accidentals():
    layers = {name: layer(note(name, 4)) for name in "de"}
    staves = {name: f'<staff n="1">{each}</staff>' for name, each in layers.items()}
    bars = {name: around(each) for name, each in staves.items()}
    sections = {name: f"<section>{each}</section>" for name, each in bars.items()}
    sharp = note("c", 4, '<supplied><accid accid="s"/></supplied>')
    ossia = f"<ossia>{layers['d']}<oLayer>{note('e', 4)}</oLayer></ossia>"
    music = [around(CHOICE.format(**staves)), CHOICE.format(**bars), CHOICE.format(**sections)]
    music += [measure(CHOICE.format(**layers), REST, REST), measure(ossia, REST, REST)]
    notation, losses = read(*music, measure(layer(sharp), REST, REST))
    assert heard(notation)[0] == [(24 * n, 24, pitch) for n, pitch in enumerate([62] * 5 + [61])]
    assert losses == {}


def test_readings_within_words():
    words = "<choice><sic>x</sic><corr>a</corr></choice><del>y</del>men"
    text = measure(layer(note("c", 4, f'<verse n="1"><syl>{words}</syl></verse>')), REST, REST)
    assert [each.text for each in read(text)[0].parts[0].lyrics] == ["amen"]
