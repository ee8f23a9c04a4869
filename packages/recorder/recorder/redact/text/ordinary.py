"""What only looks like personal data: addresses that are nobody's, times, counters, versions."""

from __future__ import annotations

import ipaddress
import re

# A number of seconds or milliseconds since 1970, a decimal number, a year with a number after it,
# a date, a number in groups that no country writes its telephones in.
_NO_PHONE = re.compile(
    r"1[5-9]\d{8}(?:\d{3})?|\[?\s*\d+\.\d+\]?|(?:19|20)\d\d[-/]\d{3,8}"
    r"|(?:19|20)\d\d[-/.](?:0\d|1[0-2])[-/.][0-3]\d.*|[0-3]?\d[-/.](?:0?\d|1[0-2])[-/.](?:19|20)\d\d.*"
    r"|\d{1,3}(?:\.\d{1,3}){3}"
)
_VERSION = re.compile(r"(?:version|release|build|[\s(/@_-]v|^v|-)\s*$", re.I)


def is_ordinary(kind: str, text: str, start: int, end: int) -> bool:
    """Whether what a recogniser calls `kind` at text[start:end] names nobody."""
    part = text[start:end]
    match kind:
        case "IP_ADDRESS":
            return _nobodys(part) or bool(_VERSION.search(text[:start]))
        case "PHONE_NUMBER":
            return bool(_NO_PHONE.fullmatch(part.strip())) or _goes_on(text, start, end)
        case "EMAIL_ADDRESS":
            # git@host:path names a server and not a person.
            return part.lower().startswith("git@") and text[end : end + 1] in (":", "/")
    return False


def _nobodys(part: str) -> bool:
    """Whether an address says nothing about who has it.

    Those of the own computer, of documentation, and of private networks, which are the same in every
    household. Not one that holds the number of a network card.
    """
    try:
        address = ipaddress.ip_address(part.strip("[]").partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.packed[11:13] == b"\xff\xfe":
        return False
    return not address.is_global


def _goes_on(text: str, start: int, end: int) -> bool:
    """Whether the number is a part of a word: of a file's name, a hash, a path or an address."""
    before = text[start - 1 : start]
    if before == "=" and text[start:end].isdigit():
        return True
    if re.match(r"[\w/.#-]", before) and text[start] != "+":
        return True
    return bool(re.match(r"[\w/]|[.-][a-z0-9]", text[end : end + 2]))
