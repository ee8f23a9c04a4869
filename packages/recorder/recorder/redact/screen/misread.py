"""Secrets and personal data in text that was read from a picture: with spaces too many or too few,
with 1, l and I or 0 and O for one another, and broken over lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from recorder.redact.redactions import Box
from recorder.redact.screen.reader import Line
from recorder.redact.text.detectors import Detectors
from recorder.redact.text.passwords import Passwords
from recorder.redact.text.shapes import changes, jumbled, tokens

# By how they begin; looked for in text without its spaces.
_KEYS = re.compile(
    r"(?:AK[I1l]A|AS[I1l]A)[0-9A-Za-z]{14,18}|gh[pousr]_[0-9A-Za-z]{20,}|github_pat_\w{20,}"
    r"|xox[abeprs]-[\w-]{10,}|A[I1l]za[\w-]{28,}|g[l1I]pat-[\w-]{16,}|npm_\w{30,}|hf_[A-Za-z0-9]{28,}"
    r"|-{2,}BEGIN[A-Z]*PRIVATE"
)
# These letters stand in words as well, so what follows must be jumbled.
_UNSURE_KEYS = re.compile(r"e[yv][JjIl1\])][\w.-]{16,}|[sr]k[-_](?:[a-z]{3,8}[-_])?[\w-]{16,}")
_MAIL = re.compile(
    r"[\w.+-]+ ?[(\[{]? ?@ ?[A-Za-z][\w-]*(?: ?[.,-] ?[\w-]+)*? ?[.,] ?[A-Za-z]{2,24}\b"
)
# With a space within, or the colon read twice.
_LABEL = re.compile(r"\bp ?a ?s ?s ?w ?[o0] ?r ?d ?[l1I|]? ?([:=])", re.IGNORECASE)
_CARD = re.compile(
    r"(?<!\d)(?:[3-6]\d{3}(?:[ -]?\d{4}){3}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5})(?![\d.])"
)
_IBAN = re.compile(
    r"\b(?:A[DELTZ]|B[AEGHRY]|C[HRYZ]|D[EKO]|E[EGS]|F[IOR]|G[BEILRT]|H[RU]|I[ELQST]|JO|K[WZ]|L[BCITUVY]"
    r"|M[CDEKRTU]|N[LO]|P[KLST]|QA|R[OSU]|S[ACEIKMV]|T[LNR]|UA|V[AG]|XK)\d{2}(?: ?[A-Z0-9]{4}){2,7}"
    r"(?: ?[A-Z0-9]{1,4})?\b"
)
_DIGITS = str.maketrans("lI|OoSB", "1110058")
_PIECE = re.compile(r"[\w+/=.@:-]{4,}")


def hidden(lines: Sequence[Line], detectors: Detectors) -> dict[Box, str]:
    """Return the boxes of the lines that must not be seen, each with "secret" or "personal data"."""
    found: dict[Box, str] = {}
    for parts, text, whole in _passages(lines):
        kind = _judge(text, detectors) if whole else strict(text)
        if kind:
            for line in parts:
                found.setdefault(line.box, kind)
    for line in _broken(lines, detectors.passwords):
        found[line.box] = "secret"
    return found


def _broken(lines: Sequence[Line], passwords: Passwords) -> Iterator[Line]:
    """Yield the lines over which a password is broken."""
    ordered = sorted(lines, key=lambda line: (line.box[1], line.box[0])) if passwords else []
    for at, line in enumerate(ordered):
        for other in ordered[max(0, at - 60) : at + 60]:
            if (
                (_is_below(line.box, other.box) or _is_beside(line.box, other.box))
                and passwords.near(line.text + other.text)
                and not (passwords.near(line.text) or passwords.near(other.text))
            ):
                yield from (line, other)


def strict(text: str) -> str:
    """Return "secret" or "personal data" for a text that was joined from parts, "" for neither."""
    if tokens(text) or keys(text):
        return "secret"
    return "personal data" if _is_mail(text) else ""


def _judge(text: str, detectors: Detectors) -> str:
    digits = re.sub(r"[\dlI|OoSB]{3,}", _as_digits, text)
    labelled = _LABEL.sub(r"password\1", text)
    kinds = {f.kind for t in {text, digits, labelled} for f in detectors.found(t)}
    # Words without their spaces look like tokens: there only what begins like a key counts.
    if "secret" in kinds or keys(text.replace(" ", "")) or any(map(tokens, _pieces(text))):
        return "secret"
    if detectors.passwords.near(text):
        return "secret"
    if "personal" in kinds or _is_mail(text) or _CARD.search(digits) or _is_account(text):
        return "personal data"
    return ""


def keys(text: str) -> list[tuple[int, int]]:
    """Return where a text without its spaces has what begins like a key."""
    unsure = [m.span() for m in _UNSURE_KEYS.finditer(text) if jumbled(m[0])]
    return [m.span() for m in _KEYS.finditer(text)] + unsure


def _as_digits(match: re.Match[str]) -> str:
    word = match[0]
    return word.translate(_DIGITS) if 2 * sum(c.isdigit() for c in word) >= len(word) else word


def _is_mail(text: str) -> bool:
    return any(not m[0].lower().startswith("git") for m in _MAIL.finditer(text))


def _is_account(text: str) -> bool:
    return any(sum(c.isdigit() for c in m[0]) >= 10 for m in _IBAN.finditer(text))


def _pieces(text: str) -> list[str]:
    """Return neighbours that both look drawn by a machine, joined: a space may be a misreading."""
    joined: list[str] = []
    before = ""
    for piece in text.split():
        mixed = len(piece) >= 3 and changes(piece) >= 2
        if before and mixed:
            before += piece
            joined.append(before)
        else:
            before = piece if mixed else ""
    return joined


def _passages(lines: Sequence[Line]) -> list[tuple[list[Line], str, bool]]:
    """Return (lines, their text, whether it is whole): each alone, those of a row, broken tokens."""
    passages = [([line], line.text, True) for line in lines]
    ordered = sorted(lines, key=lambda line: (line.box[1], line.box[0]))
    for at, line in enumerate(ordered):
        near = [o for o in ordered[max(0, at - 60) : at + 60] if o is not line]
        beside = [o for o in near if _is_beside(line.box, o.box)]
        if beside:
            next_one = min(beside, key=lambda o: o.box[0])
            passages.append(([line, next_one], f"{line.text} {next_one.text}", True))
        run, text = [line], _last(line.text)
        while text:
            below = [o for o in ordered[at + 1 : at + 80] if _is_below(run[-1].box, o.box)]
            if not below:
                break
            next_one = min(below, key=lambda o: (o.box[1], o.box[0]))
            first = _first(next_one.text)
            torn = "@" in text and not _is_mail(text)
            if not first or not _is_part(text) or not (_is_part(first) or torn):
                break
            run, text = [*run, next_one], text + first
            passages.append((list(run), text, False))
            if first != next_one.text.strip() or len(run) > 12:
                break
    return passages


def _is_part(text: str) -> bool:
    """Whether this may be a part of a key or of an address, and not a word of a sentence."""
    return changes(text) >= 2 or "@" in text


def _last(text: str) -> str:
    pieces = text.split()
    return pieces[-1] if pieces and _PIECE.fullmatch(pieces[-1]) else ""


def _first(text: str) -> str:
    pieces = text.split()
    return pieces[0] if pieces and _PIECE.fullmatch(pieces[0]) else ""


def _is_beside(a: Box, b: Box) -> bool:
    """Whether `b` goes on to the right of `a` in the same row."""
    shared = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    gap = b[0] - (a[0] + a[2])
    return shared > 0.6 * min(a[3], b[3]) and -4 <= gap <= 8 * max(a[3], b[3])


def _is_below(a: Box, b: Box) -> bool:
    """Whether `b` is the next line of the paragraph of `a`: of its height, just below, at its left."""
    high = min(a[3], b[3])
    gap = b[1] - (a[1] + a[3])
    left = abs(b[0] - a[0]) <= 2 * high
    return max(a[3], b[3]) < 1.6 * high and -0.6 * high < gap < 1.2 * high and left and b[1] > a[1]
