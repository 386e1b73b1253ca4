"""Editorial markup of MEI: of several readings one is played, and nothing lies around its notes."""

from musictx.music.notation.mei_xml import Element, name_of

PREFERRED = {"choice": ("corr", "reg", "expan"), "app": ("lem",), "rdgGrp": ("lem",)}  # else the first
OUT = {"del", "oStaff", "oLayer"}
AROUND = {
    *PREFERRED,
    *("corr", "sic", "reg", "orig", "expan", "abbr", "lem", "rdg"),
    *("supplied", "unclear", "damage", "add", "subst", "restore", "ossia"),
    "del",  # that is restored
}


def settle(parent: Element) -> None:
    """Leaves one reading of each place, without the markup around it."""
    out, has_words = _out(parent), _has_words(parent)
    kept = list[Element]()
    for child in parent:
        if child not in out:
            settle(child)
            is_around = name_of(child) in AROUND and not has_words and not _has_words(child)
            kept.extend(child if is_around else [child])
        elif has_words:  # those behind it stay
            child.text, child[:] = None, []
            kept.append(child)
    parent[:] = kept


def _out(parent: Element) -> set[Element]:
    name = name_of(parent)
    if name in PREFERRED:
        preferred = [child for kind in PREFERRED[name] for child in parent if name_of(child) == kind]
        return {*parent} - {*(preferred or parent)[:1]}
    return {child for child in parent if name_of(child) in OUT and (name, name_of(child)) != ("restore", "del")}


def _has_words(element: Element) -> bool:
    return any((text or "").strip() for text in (element.text, *(child.tail for child in element)))
