"""Signs of a whole piece: they stay over new bars."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from kept_bars import SIGNS, attributes, continued, filled, note, read, score, whole

SOUND = '<direction><direction-type>{}</direction-type><sound {}="{}"/></direction>'
METRONOME = "<metronome><beat-unit>quarter</beat-unit><per-minute>{}</per-minute></metronome>"
LAST = '<direction><direction-type><words>Fine</words></direction-type><sound fine="yes"/></direction>'
FORTE = SIGNS.format("<dynamics><f/></dynamics>")
BREAK = '<print new-system="yes"/>'
LATER = "<direction><direction-type><words>rit.</words></direction-type><offset>1</offset></direction>"


def signs_of(text, part=0):
    """The signs in each bar of a part, and how many quarters behind its beginning; a number if there is one."""
    divisions, bars = 1.0, []
    for bar in ElementTree.fromstring(text).findall("part")[part].findall("measure"):
        now, found = 0.0, []
        for each in bar:
            divisions = float(each.findtext("divisions") or divisions)
            at = now + float(each.findtext("offset") or 0) / divisions
            found += [(one.tag, at, one.text) for kind in each.iterfind("direction-type") for one in kind]
            found += [(each.tag, at, None)] if each.tag == "print" else []
            found += [(name, at, value) for sound in each.iter("sound") for name, value in sound.attrib.items()]
            if each.find("chord") is None and each.tag in ("note", "backup", "forward"):
                now += float(each.findtext("duration") or 0) / divisions * (-1 if each.tag == "backup" else 1)
        bars.append(found)
    return bars


@pytest.mark.parametrize("divisions", [1, 6])
def test_tempi_jumps_marks_and_breaks_stay_at_their_places_over_new_bars(divisions):
    def beat(step, beats):
        return note(step, length=divisions * beats)

    top = [
        attributes(divisions) + SOUND.format(METRONOME.format(100), "tempo", 100) + beat("C", 4),
        BREAK + SIGNS.format("<rehearsal>A</rehearsal>") + SIGNS.format("<words>più mosso</words>") + FORTE
        + beat("D", 2) + SOUND.format("<words>Andante</words>", "tempo", 76) + beat("E", 1)
        + LATER.replace(">1<", f">{divisions}<").replace("rit.", "a tempo") + beat("F", 1),
        SOUND.format("<coda/>", "coda", "c") + SIGNS.format("<words>dolce</words>") + beat("D", 1) + beat("E", 3)
        + SIGNS.format("<words>D.C. al Fine</words>"),
        SOUND.format("<dynamics><p/></dynamics>", "tempo", 90)
        + beat("C", 3) + '<sound tempo="80"/>' + beat("C", 1) + LAST,
    ]  # fmt: skip
    text = score(top, [attributes(divisions, clef="F4") + beat("C", 4), *[beat("C", 4)] * 3])
    notation = read(text)
    made = whole(filled(notation, 0, 1, 2, 3))
    stay = [[each for each in bar if each[0] != "dynamics" and each[2] != "dolce"] for bar in signs_of(text)]
    assert signs_of(made) == stay
    assert [tempo.quarters_a_minute for tempo in read(made).tempi] == [100, 76, 90, 80]
    assert signs_of(made, 1) == [[], [], [], []]
    for parts in ((0,), (1,), (0, 1)):
        assert read(whole(continued(filled(notation, 1, parts=parts)))).tempi == notation.tempi


def test_a_tempo_of_a_part_that_is_gone_or_below_a_new_one_is_said_once():
    slow = [SOUND.format(METRONOME.format(n), "tempo", n) for n in (60, 70)]
    notation = read(score([attributes() + slow[0] + note(), slow[1] + note()], [attributes() + note("E"), note("E")]))
    upper, lower = notation.parts
    for parts in ((lower,), (lower, upper), (upper, lower)):
        made = whole(filled(replace(notation, parts=parts), 0, 1))
        assert made.count("<metronome") == 2
        assert read(made).tempi == notation.tempi


def numbers_of(text):
    parts = ElementTree.fromstring(text).findall("part")
    return [[(bar.get("number"), bar.get("implicit")) for bar in part.findall("measure")] for part in parts]


@pytest.mark.parametrize(
    ("numbers", "after"),
    [
        (("1", "2", "X1", "3"), "4"),
        (("1", "3", "4", "4a"), "5"),
        (("0", "1", "2", "X2"), "3"),
        (("7", "8", "9", "9"), "10"),
    ],
)
@pytest.mark.parametrize("new", [(), (2,), (3,), (0, 1), (0, 1, 2, 3)])
def test_new_bars_have_the_numbers_of_those_in_whose_places_they_are(numbers, after, new):
    bars = [attributes() + note(), note("D"), note("E"), note("F")]
    text = score(bars, bars)
    for old, number in zip("1234", numbers, strict=True):
        hidden = ' implicit="yes"' * number.startswith("X")
        text = text.replace(f'<measure number="{old}">', f'<measure @="{number}"{hidden}>')
    text = text.replace("@", "number")
    notation = read(text)
    first, second = numbers_of(whole(filled(notation, *new) if new else notation))
    assert first == second == numbers_of(text)[0]
    longer = numbers_of(whole(continued(filled(notation, *new) if new else notation)))
    assert longer[0] == longer[1]
    assert longer[0][:4] == first
    assert longer[0][4][0] == after
