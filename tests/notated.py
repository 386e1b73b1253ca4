"""The same few bars in the formats of notation programs."""

from musictx.music.midi_file import Event, EventFile, EventTrack, write_events

KERN = (
    "**kern\t**kern\n*M3/4\t*M3/4\n*k[f#]\t*k[f#]\n4GG\t4dd\n=1\t=1\n2G\t[4b\n.\t8b]\n.\t8a\n"
    "4D\tqg\n.\t4f#\n=2\t=2\n2.GG\t2.g\n==\t==\n*-\t*-\n"
)
ABC = "%abc\nX:1\nT:Air\nM:3/4\nL:1/4\nK:G\n[V:1] d | B3/2A/F | G3 |]\n[V:2] G, | G,2 D, | G,3 |]\n"
XML = """<?xml version="1.0"?><score-partwise version="4.0"><part-list>
<score-part id="P1"><part-name>Clarinet</part-name>
</score-part></part-list><part id="P1"><measure number="1"><attributes>
<divisions>6</divisions><key><fifths>2</fifths></key>
<time><beats>2</beats><beat-type>4</beat-type></time><transpose><chromatic>-2</chromatic></transpose></attributes>
<direction><direction-type><metronome><beat-unit>quarter</beat-unit><per-minute>90</per-minute>
</metronome></direction-type></direction>{notes}</measure></part></score-partwise>"""
NOTE = "<note><pitch><step>{}</step><octave>4</octave></pitch><duration>{}</duration></note>"
MEI = """<mei xmlns="http://www.music-encoding.org/ns/mei"><music><body><mdiv><score><scoreDef meter.count="2"
meter.unit="4"><staffGrp><staffDef n="1" lines="5" clef.shape="G" clef.line="2"/></staffGrp></scoreDef>
<section><measure n="1"><staff n="1"><layer n="1"><note pname="c" oct="4" dur="4"/>
<note pname="e" oct="4" dur="4"/></layer></staff></measure></section></score>
</mdiv></body></music></mei>"""


def notes(notation):
    return [part.notes for part in notation.parts]


def midi_of(tracks, meta=()):
    """A file with a note of a quarter at each (channel, tick, pitch) of a track."""
    made = [EventTrack([Event(tick, data) for tick, data in meta], 0)]
    for track in tracks:
        events = [(tick, bytes([0x90 | channel, pitch, 80])) for channel, tick, pitch in track]
        events += [(tick + 480, bytes([0x80 | channel, pitch, 0])) for channel, tick, pitch in track]
        made.append(EventTrack([Event(*event) for event in sorted(events)], 0))
    return write_events(EventFile((480).to_bytes(2), made))
