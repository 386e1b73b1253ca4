"""Signs of MEI that stand for beats, halves and bars of music or rest."""

import pytest
from mei_texts import END, HEAD, REST, heard, layer, measure, note, read

from musictx.errors import MidiError
from musictx.music.notation import mei_xml
from musictx.music.notation.read import read_notation


def in_meter(beats, unit, *measures):
    text = HEAD.replace('count="2" unit="8"', f'count="{beats}" unit="{unit}"') + "".join(measures) + END
    notation, losses = read_notation(text.encode(), "mei")
    return heard(notation)[0], losses


def test_beats_and_halves_again():
    triplet = '<tuplet num="3" numbase="2">' + note("c") + note("d") + note("e") + "</tuplet>"
    first = measure(layer(triplet, "<beatRpt/><beam>", note("f"), note("g"), "<beatRpt/></beam>"), REST, REST)
    second = measure(layer("<beatRpt/>", note("a", 4), "<halfmRpt/>"), REST, REST, n=2)
    music, losses = in_meter(4, 4, first, second)
    assert music[:6] == [(0, 8, 60), (8, 8, 62), (16, 8, 64), (24, 8, 60), (32, 8, 62), (40, 8, 64)]
    assert music[6:10] == [(48, 12, 65), (60, 12, 67), (72, 12, 65), (84, 12, 67)]
    assert music[10:] == [(96, 12, 65), (108, 12, 67), (120, 24, 69), (144, 12, 65), (156, 12, 67), (168, 24, 69)]
    assert losses == {}


def test_a_beat_has_three_eighths_in_6_8_or_as_many_as_its_sign_says():
    of_three = measure(layer(note("c"), note("d"), note("e"), "<beatRpt/>"), REST, REST)
    of_one = measure(layer(note("f"), '<beatRpt beatdef="1"/>' * 5), REST, REST, n=2)
    music, _ = in_meter(6, 8, of_three, of_one)
    assert music[:6] == [(0, 12, 60), (12, 12, 62), (24, 12, 64), (36, 12, 60), (48, 12, 62), (60, 12, 64)]
    assert music[6:] == [(72 + 12 * n, 12, 65) for n in range(6)]


def test_the_beat_and_the_half_follow_a_change_of_meter():
    change = '<scoreDef><meterSig count="3" unit="2"/></scoreDef>'
    first = measure(layer(note("c"), "<halfmRpt/>"), REST, REST)
    second = measure(layer(note("d", 2), "<beatRpt/>", note("e", 2)), REST, REST, n=2)
    third = measure(layer(note("f", 2, dots=1), "<halfmRpt/>"), REST, REST, n=3)
    music, _ = in_meter(2, 8, first, change, second, third)
    assert music[:2] == [(0, 12, 60), (12, 12, 60)]
    assert music[2:] == [(24, 48, 62), (72, 48, 62), (120, 48, 64), (168, 72, 65), (240, 72, 65)]


def test_a_repeat_of_nothing_or_of_a_part_of_a_note_is_silent_and_counted():
    first = measure(layer("<beatRpt/>", note("c", 2), "<beatRpt/>"), REST, REST)
    second = measure(layer(note("d", 1)), REST, REST, n=2)
    third = measure(layer("<halfmRpt/>", note("e", 2)), REST, REST, n=3)
    assert in_meter(4, 4, first, second, third) == ([(24, 48, 60), (96, 96, 62), (240, 48, 64)], {"unread": 3})
    again = measure("<layer><mRpt/></layer>", REST, REST)
    assert in_meter(4, 4, again, second) == ([(96, 96, 62)], {"unread": 1})


@pytest.mark.parametrize("sign", ["<mRpt2/>", '<multiRpt num="2"/>'])
@pytest.mark.parametrize("other", ["<layer/>", "<layer><mSpace/></layer>", "<layer><mRpt2/></layer>", "", None])
def test_two_bars_again(sign, other):
    bars = [measure(layer(note(name, 4)), layer(note("g", 4)), REST, n=n) for n, name in enumerate("cde", 1)]
    again = measure(layer(sign), layer(note("g", 4)), REST, n=4)
    last = measure(other or "", layer(note("g", 4)), REST, n=5)
    if other is None:
        last = last.replace('<staff n="1"></staff>', "")
    notation, losses = read(*bars, again, last, bars[0].replace('n="1"', 'n="6"', 1))
    assert heard(notation)[0] == [(24 * n, 24, pitch) for n, pitch in enumerate([60, 62, 64, 62, 64, 60])]
    assert heard(notation)[1] == [(24 * n, 24, 67) for n in range(6)]
    assert losses == {}


@pytest.mark.parametrize("silent", ["", '<staff n="1"><layer/></staff>'])
def test_one_staff_rests_for_bars_that_others_write(silent):
    def bar(upper, lower):
        lower = f'<staff n="2">{layer(note(lower, 4)) if lower else REST}</staff>'
        return f'<measure n="1">{upper}{lower}<staff n="3">{REST}</staff></measure>'

    rests = '<staff n="1"><layer><multiRest num="2"/></layer></staff>'
    sounds = f'<staff n="1">{layer(note("c", 4))}</staff>'
    notation, _ = read(bar(rests, "d"), bar(silent, "e"), bar(sounds, "f"))
    assert heard(notation) == [[(48, 24, 60)], [(0, 24, 62), (24, 24, 64), (48, 24, 65)], []]
    notation, _ = read(bar(rests, ""), bar(silent, "e"), bar(sounds, "f"))
    assert heard(notation) == [[(48, 24, 60)], [(24, 24, 64), (48, 24, 65)], []]
    notation, _ = read(bar(rests, ""), bar(sounds, "f"))  # where all rest
    assert heard(notation) == [[(48, 24, 60)], [(48, 24, 65)], []]


def test_repeats_within_bars_have_bounds(monkeypatch):
    monkeypatch.setattr(mei_xml, "MOST_COPIES", 1000)
    graces = note("c", 8, grace="acc") * 200
    with pytest.raises(MidiError, match="too long"):
        read(measure(layer(graces, note("d"), "<beatRpt/>" * 5), REST, REST))
