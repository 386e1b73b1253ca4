"""One score in each notation: an upbeat, two changes of meter, one of key and tempo, an instrument."""

import pytest

from musictx.music.notation.parts import Bar, Note
from musictx.music.notation.read import read_notation

HUMDRUM = """**kern
*I"Flute
*M4/4
*MM90
4cc
=1
1cc
=2
*M3/4
2.dd
=3
*k[f#c#]
*M6/8
*MM60
2.ff#
==
*-
""".replace(" ", "\t")
ABC = """X:1
M:4/4
L:1/4
Q:1/4=90
V:1 name=Flute
K:C
c|c4|[M:3/4]d3|[K:D][M:6/8][Q:1/4=60]f3|
"""
MEI = """<mei xmlns="http://www.music-encoding.org/ns/mei"><music><body><mdiv><score><scoreDef meter.count="4"
meter.unit="4" keysig="0"><staffGrp><staffDef n="1" lines="5" clef.shape="G"
clef.line="2"><label>Horn in F</label><instrDef midi.instrnum="60"/></staffDef>
</staffGrp></scoreDef><section>
<measure n="0" metcon="false"><staff n="1"><layer n="1"><note pname="c" oct="5" dur="4"/></layer></staff>
<tempo tstamp="1" staff="1" mm.unit="4" mm="90"/></measure>
<measure n="1"><staff n="1"><layer n="1"><note pname="c" oct="5" dur="1"/></layer></staff></measure>
<scoreDef meter.count="3" meter.unit="4"/>
<measure n="2"><staff n="1"><layer n="1"><note pname="d" oct="5" dur="2" dots="1"/></layer></staff></measure>
<scoreDef keysig="2s" meter.count="6" meter.unit="8"/>
<measure n="3"><staff n="1"><layer n="1"><note pname="f" oct="5" dur="2" dots="1"><accid accid.ges="s"/></note></layer>
</staff><tempo tstamp="1" staff="1" mm.unit="4" mm.dots="1" mm="40"/></measure>
</section></score></mdiv></body></music></mei>"""
ATTRIBUTES = "<attributes>{}<time><beats>{}</beats><beat-type>{}</beat-type></time></attributes>"
TEMPO = "<direction><direction-type><metronome><beat-unit>quarter</beat-unit><per-minute>{}</per-minute></metronome>"
TEMPO += "</direction-type></direction>"
NOTE = "<note><pitch><step>{}</step>{}<octave>5</octave></pitch><duration>{}</duration></note>"
MEASURES = (
    ATTRIBUTES.format("<divisions>1</divisions>", 4, 4) + TEMPO.format(90) + NOTE.format("C", "", 1),
    NOTE.format("C", "", 4),
    ATTRIBUTES.format("", 3, 4) + NOTE.format("D", "", 3),
    ATTRIBUTES.format("<key><fifths>2</fifths></key>", 6, 8)
    + TEMPO.format(60)
    + NOTE.format("F", "<alter>1</alter>", 3),
)
XML = """<score-partwise version="4.0"><part-list><score-part id="P1"><part-name>Flute</part-name></score-part>
</part-list><part id="P1">{}</part></score-partwise>""".format(
    "".join(f'<measure number="{n}">{each}</measure>' for n, each in enumerate(MEASURES))
)


@pytest.mark.parametrize(("kind", "text"), [("humdrum", HUMDRUM), ("abc", ABC), ("mei", MEI), ("musicxml", XML)])
def test_each_notation_says_the_same(kind, text):
    score, losses = read_notation(text.encode(), kind)
    assert score.bars == (Bar(0, 4, 4), Bar(24, 4, 4), Bar(120, 3, 4), Bar(192, 6, 8))
    assert [key[:2] for key in score.keys] == [(0, 0), (192, 2)]
    assert [tempo[:2] for tempo in score.tempi] == [(0, 90.0), (192, 60.0)]
    (part,) = score.parts
    assert part.notes == (Note(0, 24, 72), Note(24, 96, 72), Note(120, 72, 74), Note(192, 72, 78))
    assert (part.name, part.program) == (("Horn in F", 60) if kind == "mei" else ("Flute", 73))
    assert not losses


def test_a_tempo_of_mei_in_words_alone_is_counted():
    _, losses = read_notation(MEI.replace('mm.unit="4" mm="90"/>', ">Lento</tempo>").encode(), "mei")
    assert losses == {"wordy": 1}
