"""Where the page listens, and under which names it answers: no name is ever looked up."""

import re
from collections.abc import Iterable
from ipaddress import ip_address

from musictx.errors import ConfigError

LOCAL = ("localhost", "127.0.0.1", "[::1]")  # what a browser on this machine calls it
NAME = r"\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*"
HOST = re.compile(rf"({NAME})(?::([0-9]{{1,5}}))?", re.ASCII | re.IGNORECASE)
ORIGIN = re.compile(rf"https?://({NAME})(?::([0-9]{{1,5}}))?", re.ASCII | re.IGNORECASE)


def listening(host: str) -> str:
    """The address to listen at. Raises ConfigError for a name other than localhost: it would have to be looked up."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        return str(ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        raise ConfigError(
            f"host={host}: give an address, such as 127.0.0.1, ::1 or 0.0.0.0; names are not looked up"
        ) from None


def answered(address: str, allowed: str | Iterable[object] | None) -> tuple[str, ...]:
    """The hosts that requests may name, the one to tell people first. On loopback these are this machine's own names;
    elsewhere other people's machines may reach the page, so a person says what they call it. Raises ConfigError."""
    names = tuple(_plain(str(name)) for name in ([allowed] if isinstance(allowed, str) else allowed or ()))
    own = _plain(address)
    if own in LOCAL:
        return (own, *LOCAL, *names)
    if not names:
        raise ConfigError(
            f"host={address} is reached from elsewhere: give allowed_hosts=, the names or addresses that people "
            "type, such as allowed_hosts=[music.example.org,192.168.1.5]"
        )
    return names


def _plain(name: str) -> str:
    """A name or an address as a browser writes it."""
    try:
        address = ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        if re.fullmatch(NAME, name, re.ASCII | re.IGNORECASE) and not name.startswith("["):
            return name.lower()
        raise ConfigError(
            f"allowed_hosts={name!r}: give names or addresses, without http:// and without a port, such as "
            "music.example.org or 192.168.1.5"
        ) from None
    return f"[{address}]" if address.version == 6 else str(address)


def host_of(header: str) -> str | None:
    """The host that a Host header names, None where it names none or an impossible port."""
    return _host(HOST.fullmatch(header))


def origin_host(header: str) -> str | None:
    """The host of the page that sent a request, by its Origin header; None for `null` and whatever else."""
    return _host(ORIGIN.fullmatch(header))


def _host(match: re.Match[str] | None) -> str | None:
    if match is None or (match[2] and not 0 < int(match[2]) < 2**16):
        return None
    return match[1].lower()
