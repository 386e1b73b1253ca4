"""Which tracks are drum kits by their names."""

import re
from unicodedata import normalize

KIT = re.compile(
    r"drums?|drum(kit|set|loop|rack)s?|bassdrum|kicks?|snares?|hihats?|hats?|claps?|toms|cymbals?|crash|ride|shaker"
    r"|percs?|per[ck]ussions?|percussioni|percusión|schlagzeug|batterie|bater[ií]a|batteria|trommeln?"
)
BESIDE = re.compile(
    r"[a-c]|l|r|left|right|acoustic|electronic|studio|standard|room|rock|jazz|closed|open|loops?|rolls?|fills?|kit|set"
    r"|rack|machine|track|midi|main|top|tr|ch|channel|grosse"
)
JOINED = {
    r"(floor|rack|low|mid|high|hi)[ _-]?toms?\b|\btom[ _-]?\d": "toms",
    r"hi[ _-]hat": "hihat",
    r"bass[ _-]drum": "bassdrum",
}


def is_kit(name: str) -> bool:
    """Whether a name is that of a drum kit, or of a part of one, and of nothing else: Drum & Bass is no kit."""
    plain = normalize("NFC", name).casefold()
    for joined, one in JOINED.items():
        plain = re.sub(joined, one, plain)
    words = [word for word in re.split(r"[\W\d_]+", plain) if word]
    kits = [KIT.fullmatch(word) is not None for word in words]
    return any(kits) and all(kit or BESIDE.fullmatch(word) for kit, word in zip(kits, words, strict=True))
