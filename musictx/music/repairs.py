"""The faults of a MIDI file or a score, by kinds, and their repairs in words."""

from collections import Counter

# one, and several; {} is how many
LOSSES = {  # of scores
    "grace": ("a grace note is left out", "{} grace notes are left out"),
    "unpitched": ("a note without a pitch is left out", "{} notes without a pitch are left out"),
    "unread": ("a note that music21 cannot read is left out", "{} notes that music21 cannot read are left out"),
    "beyond": ("a note beyond MIDI's pitches is left out", "{} notes beyond MIDI's pitches are left out"),
    "between": (
        "a pitch lies between MIDI's semitones: it gets one of them",
        "{} pitches lie between MIDI's semitones: they get one of them",
    ),
    "finer": (
        "a note has a time that twenty-fourths of a quarter lack: it gets the nearest",
        "{} notes have times that twenty-fourths of a quarter lack: they get the nearest",
    ),
    "shared": (
        "a note that two voices of a staff share is one",
        "{} notes that two voices of a staff share are one each",
    ),
    "unison": (
        "a note is left out of MIDI: a longer one of its staff and pitch begins with it",
        "{} notes are left out of MIDI: longer ones of their staff and pitch begin with them",
    ),
    "symbols": ("a chord symbol is left out", "{} chord symbols are left out"),
    "unheld": ("a chord symbol is left out of MIDI", "{} chord symbols are left out of MIDI"),
    "spines": (
        "a spine beside notes and words is left out, as of chord symbols or fingerings",
        "{} spines beside notes and words are left out, as of chord symbols or fingerings",
    ),
    "tablatures": ("a staff of tablature has the notes of another", "{} staves of tablature have the notes of others"),
    "hidden": ("a note that is not printed is left out", "{} notes that are not printed are left out"),
    "sounds": ("another sound of a part is left out", "{} other sounds of parts are left out"),
    "clefs": ("a change of clef is left out", "{} changes of clef are left out"),
    "cue": ("a cue note is left out", "{} cue notes are left out"),
    "overlay": (
        "a voice beside another within a bar (&) is left out",
        "{} voices beside others within a bar (&) are left out",
    ),
    "tunes": ("of two tunes the first is read", "{} further tunes are left out: the first is read"),
    "movements": (
        "of two movements the first is read",
        "{} further movements are left out: the first is read",
    ),
    "wordy": ("a tempo without a number is left out", "{} tempi without a number are left out"),
    "lyrics": ("a syllable of lyrics is left out", "{} syllables of lyrics are left out"),
    "unsung": (
        "a syllable is left out of MIDI, which holds one verse",
        "{} syllables are left out of MIDI, which holds one verse",
    ),
    "dynamics": ("a dynamic mark is left out", "{} dynamic marks are left out"),
    "articulations": (
        "an articulation, fermata or fingering is left out",
        "{} articulations, fermatas and fingerings are left out",
    ),
    "ornaments": (
        "an ornament is left out, as a trill, tremolo or arpeggio",
        "{} ornaments are left out, as trills, tremolos and arpeggios",
    ),
    "spans": ("an octave, pedal or other line is left out", "{} octave, pedal and other lines are left out"),
    "figures": ("a figure of a bass is left out", "{} figures of a bass are left out"),
    "extenders": ("a line after a syllable is left out", "{} lines after syllables are left out"),
    "brackets": ("a bracket around staves is left out", "{} brackets around staves are left out"),
    "doubles": ("a double or dashed bar line is left out", "{} double or dashed bar lines are left out"),
    "sums": (
        "a meter that is a sum, as 3+2/8, is written as one number, as 5/8",
        "{} meters that are sums, as 3+2/8, are written as one number each, as 5/8",
    ),
    "words": ("a text over a staff is left out", "{} texts over the staves are left out"),
    "repeats": ("a repeat sign is left out: the music is read once",)
    + ("{} repeat signs are left out: the music is read once",),
    "swung": ("its swing is written straight",) * 2,
    "markers": ("a marker is left out", "{} markers are left out"),
    "pedals": ("a press of the sustain pedal is left out", "{} presses of the sustain pedal are left out"),
    "programs": ("a change of sound within a track is left out", "{} changes of sound within a track are left out"),
    "bends": ("a pitch bend is left out", "{} pitch bends are left out"),
    "drums": ("a drum note is left out", "{} drum notes are left out"),
    "voices": (
        "a note is shortened: a staff has at most four voices",
        "{} notes are shortened: a staff has at most four voices",
    ),
    "uneven": (
        "a bar is shorter in one part than in another: a rest fills it",
        "{} bars are shorter in one part than in another: rests fill them",
    ),
    "odd": (
        "a bar is a little longer: no time signature has its length",
        "{} bars are a little longer: no time signature has their lengths",
    ),
    "numbers": ("its bars are counted from 1, since its own numbers fall or are no numbers of bars",) * 2,
    "lines": ("a bar line at no thirty-second is left out", "{} bar lines at no thirty-second are left out"),
}
REPAIRS = LOSSES | {
    "cut_short": ("it is cut short: what is there to its last whole event is read",) * 2,
    "chunk_length": (
        "the length of a track is wrong: it is read to its end",
        "the lengths of {} tracks are wrong: they are read to their ends",
    ),
    "header_length": ("the length of its header is wrong",) * 2,
    "track_count": ("its header counts another number of tracks: all that are there are read",) * 2,
    "sequences": ("",) + ("its {} sequences, which belong one after the other, are heard together",),
    "event_cut": (
        "an event reaches beyond the end of its track: it is left out, and what follows",
        "{} events reach beyond the ends of their tracks: they are left out, and what follows",
    ),
    "no_status": ("an event does not say what it is: left out", "{} events do not say what they are: left out"),
    "value": ("a value above 127 is taken as 127", "{} values above 127 are taken as 127"),
    "named_kits": (
        "a track is heard as drums, as its name says",
        "{} tracks are heard as drums, as their names say",
    ),
    "note_without_end": ("a note without an end ends with its track", "{} notes without an end end with their tracks"),
    "end_first": (
        "an end that comes before its note, at the same tick, makes a note without length",
        "{} ends that come before their notes, at the same tick, make notes without length",
    ),
    "note_lost": (
        "a note is left out: its only end is for one of its pitch that sounds already",
        "{} notes are left out: their only ends are for notes of their pitch that sound already",
    ),
    "signature": ("a time signature that cannot be is ignored", "{} time signatures that cannot be are ignored"),
    "signature_replaced": (
        "of two time signatures at one tick the later counts",
        "{} time signatures count for nothing: at their ticks there are later ones",
    ),
    "tempo": ("a tempo that cannot be is ignored", "{} tempi that cannot be are ignored"),
    "name": (
        "the letters of a name are guessed: it is not in UTF-8",
        "the letters of {} names are guessed: they are not in UTF-8",
    ),
}


def say_repairs(repairs: Counter[str]) -> list[str]:
    """A clause for each kind that was counted."""
    return [
        one if repairs[kind] == 1 else more.format(repairs[kind])
        for kind, (one, more) in REPAIRS.items()
        if repairs[kind]
    ]
