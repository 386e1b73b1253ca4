"""Sounds of parts, by their names."""

from collections import Counter

import pytest
from kept_bars import attributes, note, score

from musictx.music.notation.read import read_notation
from musictx.music.notation.sounds import sound_of, sounds_of

PIANO, VOICE = 0, 53
SAID = {
    40: "Violin I|Violino II|Violini|Geige|Violine|Violon|Violons|Vln.|Baroque Violin",
    41: "Viola|Viole|Violas|Bratsche|Vla.|Viola d'amore",
    42: "Violoncello e Basso|Cello|Celli|Violoncelle|Viola da gamba|Bass Viol|Vc.",
    43: "Contrabass|Double Bass|Kontrabass|Kontrabässe|Contrabbasso|Contrebasse|Violone|String Bass",
    48: "Strings|Streicher",
    110: "Fiddle",
    73: "Flute|Flöte|Floete|Flauto|Flûte|Alto Flute|Bass Flute|Contrabass Flute|Querflöte|Flauto traverso|FLUTE",
    72: "Piccolo|Piccolo Flute|Ottavino|Fife",
    74: "Recorder|Alto Recorder|Sopranino Recorder|Bass Recorder|Blockflöte|Altblockflöte|Flauto dolce|Flûte à bec",
    75: "Pan Flute|Pan Pipes",
    78: "Tin Whistle",
    68: "Oboe|Oboi|Hautbois|Oboe d'amore|Bass Oboe|Krummhorn|Crumhorn",
    69: "English Horn|Corno inglese|Cor anglais|Englischhorn",
    71: "Clarinet in Bb|Bass Clarinet|Klarinette|Bassklarinette|Clarinetto|Clarinette|Alto Clarinet|Basset Horn"
    "|Contrabass Clarinet|Bassetthorn|Corno di bassetto",
    70: "Bassoon|Fagott|Fagotto|Basson|Contrabassoon|Kontrafagott|Contrebasson",
    64: "Soprano Sax|Soprano Saxophone|Sopransaxophon|Saxophone soprano",
    65: "Alto Sax|Alto Saxophone|Altsaxophon|Saxophone|Sax|Sassofono",
    66: "Tenor Sax|Tenorsaxophon|Saxophone ténor|Sassofono tenore",
    67: "Baritone Sax|Bari Sax|Baritonsaxophon|Bass Saxophone",
    56: "Trumpet|Trompete|Tromba|Trombe|Trompette|Piccolo Trumpet|Bass Trumpet|Cornet|Soprano Cornet in Eb|Kornett"
    "|Solo Cornet in Bb|Repiano Cornet|Cornetto|Flugelhorn|Flügelhorn|Flugel|Flicorno|Bugle|Clarino",
    57: "Trombone|Posaune|Posaunen|Tromboni|Alto Trombone|Tenor Trombone|Bass Trombone|Bassposaune|Sackbut",
    58: "Tuba|Bass Tuba|Basstuba|Wagner Tuba|Sousaphone|Euphonium|Eufonio|Baritone Horn|Baritone (T.C.)|Tubas"
    "|Baritone B.C.|Bb Baritone|Cimbasso|Baritone in Bb|Baritonhorn|Tenorhorn|Bass in Eb|Bass in Bb|Eb Bass|Bb Bass"
    "|B♭ Bass|E-flat Bass|E flat Bass|BBb Bass|EEb Bass"
    "|Es-Bass",
    60: "Horn|Corno I in F|Corni|Cor|Waldhorn|Hörner|French Horn|Alto Horn|Tenor Horn|Solo Horn in Eb|Mellophone",
    24: "Guitar|Chitarra|Gitarre|Guitare|Ukulele|Mandolin|Lute|Laute|Luth|Oud|Bouzouki|Baritone Guitar",
    27: "Electric Guitar|E-Gitarre",
    32: "Acoustic Bass",
    33: "Bass Guitar|Electric Bass|E-Bass|Bassgitarre|Guitare basse|Basso elettrico|Basse électrique",
    35: "Fretless Bass",
    105: "Banjo|Tenor Banjo",
    6: "Harpsichord|Cembalo|Clavecin|Clavicembalo",
    7: "Clavichord",
    8: "Celesta",
    9: "Glockenspiel",
    11: "Vibraphone",
    12: "Marimba|Bass Marimba",
    13: "Xylophone",
    14: "Tubular Bells|Handbells|Church Bells|Bell Choir|Chimes|Campane",
    15: "Dulcimer|Zither|Cimbalom",
    16: "Electric Organ",
    19: "[Organo]|Organ|Orgel|Orgue",
    20: "Reed Organ|Harmonium",
    21: "Accordion|Akkordeon|Accordéon|Fisarmonica|Bandoneon",
    22: "Harmonica",
    46: "Harp|Harfe|Arpa|Harpe|Celtic Harp",
    47: "Timpani|Pauken|Timbales",
    61: "Brass",
    104: "Sitar",
    106: "Shamisen",
    107: "Koto",
    108: "Kalimba",
    109: "Bagpipes|Dudelsack",
    111: "Shehnai",
    114: "Steel Drums|Steelpan",
    118: "Tenor Drum|Bass Drum|Snare Drum|Drumset|Percussion|Schlagzeug|Tamburo|Gran cassa|Caisse claire|Kleine Trommel"
    "|Cymbals|Becken|Triangle|Toms|Hi-hat|Tambourine|Bongo Drums|Gong|Tam-Tam|Wood Blocks|Cowbell|Vibraslap",
    4: "Electric Piano|Rhodes",
    81: "Synthesizer",
    PIANO: "Piano|Klavier|Pianoforte",
    VOICE: "Basso|BASSVS|CANTVS.|Singstimme|S|B.|Soprano|Mezzo-Soprano|Alto|Contralto|Tenor|Tenore|Baritone|Bariton"
    "|Baritone Solo|Bass|Basse|Voice|Choir|Chor",
    None: "Basso continuo|Keyboard|Staff 1|",
}


@pytest.mark.parametrize(("name", "sound"), [(name, sound) for sound in SAID for name in SAID[sound].split("|")])
def test_a_part_sounds_as_its_name_says(name, sound):
    assert sound_of(name) == sound


@pytest.mark.parametrize(
    ("names", "sounds"),
    [
        ("Cornet|1st Baritone|2nd Baritone|Trombone", [56, 58, 58, 57]),
        ("Trombone|Baritone|Bass", [57, 58, 58]),
        ("Tuba|Baritone|Violin", [58, 53, 40]),
        ("Soprano|Alto|Baritone", [53, 53, 53]),
        ("Violon I|Violon II|Alto|Basse", [40, 40, 41, 43]),
        ("Violin|Soprano|Alto|Bass|Cello", [40, 53, 53, 53, 42]),
        ("Baritone", [53]),
    ],
)
def test_a_part_with_the_name_of_a_voice_is_one_of_those_around_it(names, sounds):
    parts = names.split("|")
    assert sounds_of(parts, [False] * len(parts)) == sounds
    voices = [VOICE if sound_of(name) == VOICE else sound for name, sound in zip(parts, sounds, strict=True)]
    assert sounds_of(parts, [True] * len(parts)) == voices


@pytest.mark.parametrize(("program", "others"), [(66, 1), (74, 0)])
def test_another_sound_of_a_part_is_counted(program, others):
    sounds = "".join(
        f'<midi-instrument id="P0-I{n}"><midi-program>{sound}</midi-program></midi-instrument>'
        for n, sound in ((1, 74), (2, program))
    )
    alto = note().replace("<voice>", '<instrument id="P0-I2"/><voice>')
    text = score([attributes() + note(), alto], [attributes() + note(), note()])
    notation, losses = read_notation(text.replace("</score-part>", f"{sounds}</score-part>", 1).encode(), "musicxml")
    assert notation.parts[0].program == 73
    assert losses == Counter({"sounds": others} if others else {})
