"""The General MIDI sound that the name of a part says, in English, Italian, German, French or Latin."""

import re
from collections.abc import Sequence
from itertools import groupby

VOICE, DRUMS = 53, 118  # the one of drums that has pitches

# the first that is found counts: a bass clarinet is no bass
SOUNDS = {
    r"continuo|^b\. ?c\.": None,
    r"steel ?(drum|pan)": 114,
    r"kettle ?drum|timpani|pauke|timbal": 47,
    r"drum|percussion|schlag(zeug|werk)|tamb[ou]|trommel|caisse|cassa|taiko|bongo|conga|\btoms?\b|snare|cajon": DRUMS,
    r"djembe|bodhr|tabla\b|cymbal|becken|piatti|gong|tam-?tam|triang|maraca|castanet|cow ?bell|block(?!fl)": DRUMS,
    r"agogo|hi-?hat|shaker|claves|whip|ratchet|guiro|sleigh|siren|wind machine|vibraslap": DRUMS,
    r"sax-?horn|bombard[io]n": 58,
    r"sopran.*sax|sa(x|sso).*sopran": 64,
    r"t[eé]nor.*sax|sa(x|sso).*t[eé]nor": 66,
    r"ba(r[iy]|ss).*sax|sa(x|sso).*ba(r[iy]|ss)": 67,
    r"\bsax|sax(o|\b)|sasso": 65,
    r"clarin[oi]\b": 56,
    r"[ck]larin|chalumeau|basset": 71,
    r"english horn|cor anglais|corno inglese|englisch ?horn": 69,
    r"obo[ei]|hautbo|heckel|[ck]r[ou]m(m?horn|orne)": 68,
    r"bassoon|fagott|basson|dulcian": 70,
    r"pan ?-?(fl|pipe)": 75,
    r"recorder|blockfl|flauto dolce|fl[uû]te à bec": 74,
    r"trumpet|\btromb[ae]\b|trompet|[ck]ornett?|flügelh|fl(e|ue)?u?gelh|\bflugels?\b|flicorno|bugle|\bzink": 56,
    r"tromb[oó]n|posaune|sackbut|saqueboute": 57,
    r"euphoni|eufoni|bar[iy]ton[eo]? ?horn|bar[iy]ton.*(t\.? ?c\b|b\.? ?c\b|\bin b|b♭)|tenorhorn": 58,
    r"tub(as?|e|en)\b|sousaphon|helicon|cimbasso|ophicle|serpent": 58,
    r"\b(b+|e+)[ -]?(b|♭|flat) ba(ss|r[iy]t)|\b(es|b)-bass|bass(es)? in [eb]": 58,
    r"ho?[oö]rn(s|er)?\b|\bcor(no|ni|s)?\b|mellophon": 60,
    r"piccolo|ottavino|\bfife": 72,
    r"fl([uûö]|oe)t|\bflaut|travers": 73,
    r"fretless bass": 35,
    r"(acoustic|slap) bass": 32,
    r"(electric|synth|picked) bass|bass[eo]? \(?[eé]le|bass[ -]?g(u|i)|guitare basse|e-bass": 33,
    r"(double|string|upright|stand-?up) bass|[ck]ontrab+[aä]|contrebass|violone": 43,
    r"cell[oi]s?\b|violonc|basse de viol|gamb[ae]|\bviols?\b|\bvcl?\.": 42,
    r"viol[ae]s?\b|bratsche|\bvla\.": 41,
    r"fiddle|nyckelharpa|erhu": 110,
    r"viol[ií]n|\bviolons?\b|geige|\bvln\.|\bvl\.": 40,
    r"strings|streicher|\barchi\b|cordes": 48,
    r"whistle|flageolet": 78,
    r"ocarina": 79,
    r"shakuhachi": 77,
    r"\b(electric|e-|lead|rhythm) ?(guitar|gitarre)|chitarra elettrica|guitare [eé]lectrique": 27,
    r"gu?itar|chitarra|ukulele|mandol|\blut[eh]|liuto|laute|theorb|tiorba|\boud\b|bou?zouki|balalaika": 24,
    r"banjo": 105,
    r"sitar": 104,
    r"shamisen": 106,
    r"koto": 107,
    r"kalimba": 108,
    r"bagpipe|uilleann|dudelsack|cornemuse|zampogna": 109,
    r"shehnai|shawm|schalmei|duduk": 111,
    r"harmoni[ck]a|mouth organ|blues harp": 22,
    r"dulcimer|cimbalom|zither|psalter|hackbrett": 15,
    r"harpsi|cembalo|clavecin": 6,
    r"clavi(chord|net)": 7,
    r"reed organ|harmonium": 20,
    r"electric organ|hammond": 16,
    r"organ\b|organ[oi]\b|orgel|orgue": 19,
    r"harp(e?s|e)?\b|harfe|\barp[ae]\b": 46,
    r"a[ck]+ord[ei]on|accordéon|fisarmonica|concertina|melodica|bandone": 21,
    r"celest": 8,
    r"glockenspiel|crotale": 9,
    r"vibraphon|\bvibes": 11,
    r"marimba": 12,
    r"xylophon": 13,
    r"bells?\b|chimes|campan|glocke|carillon|cloches": 14,
    r"\bbrass|blechbl": 61,
    r"rhodes|wurlitzer|(electric|e-) ?piano": 4,
    r"synth": 81,
    r"piano|klavier|fortepian": 0,
    r"\b(mezzo|soprano?|soprani|alto?s?|altus|contralto|tenore?s?|bar[iy]ton[eo]?s?|bass(o|us|i|es?)?|treble)\b": VOICE,
    r"\b(cant(o|us)|discant(o|us)?|vo(ices?|cals?|x|c[ei])|\w*chor|choir|chorus|coro|chant|gesang|\w+stimme)\b": VOICE,
    r"^[satb]\.? ?[12]?\.?$": VOICE,
}
# parts that are named as voices are of the family of those on both sides
BRASS, STRINGS = {r"sopr": 56, r"alt|tenor": 60, r"bar[iy]t|bass": 58}, {r"alt": 41, r"bass": 43}
FAMILIES = dict.fromkeys(range(56, 61), BRASS) | dict.fromkeys(range(40, 44), STRINGS)


def sounds_of(names: Sequence[str], are_sung: Sequence[bool]) -> list[int | None]:
    """The sound of each part of a score, None for a name that says none; a Baritone without words among brass is
    brass."""
    sounds = [*map(sound_of, names)]
    last = len(names) - 1
    for is_voice, same in groupby(range(len(names)), lambda n: sounds[n] == VOICE):
        run = [*same]
        near = [FAMILIES.get(sounds[n] or 0) for n in {max(run[0] - 1, 0), min(run[-1] + 1, last)} - {*run}]
        family = near[0] if near and near[0] == near[-1] else None
        if is_voice and family and not any(are_sung[n] for n in run):
            found = [[sound for words, sound in family.items() if re.search(words, names[n].lower())] for n in run]
            for n, its in zip(run, found, strict=True) if all(found) else ():
                sounds[n] = its[0]
    return sounds


def sound_of(name: str) -> int | None:
    """The sound from 0, None for a name that says none."""
    plain = name.lower().replace("v", "u") if name.isupper() else ""  # CANTVS, on old title pages
    names = (name.lower(), plain)
    return next((sound for words, sound in SOUNDS.items() if any(re.search(words, each) for each in names)), None)
