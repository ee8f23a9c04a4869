"""What a hostile program may not tell a terminal: tests of the filter over its output."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.escapes import Escapes

CSI = re.compile(r"\x1b\[[\x20-\x3f]*[\x40-\x7e]")


def shown(data: bytes) -> bytes:
    return Escapes().feed(data)


@pytest.mark.parametrize(
    "kept",
    [
        b"plain text\r\n\ttab \x08\x07",
        "你好 é ü שלום 👍🏽 \u00a0¿ e\u0301".encode(),
        b"\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mtrue\x1b[m",
        b"\x1b[2J\x1b[H\x1b[10;20H\x1b[K\x1b[5A",
        b"\x1b[?1049h\x1b[?2004h\x1b[?25l",
        b"\x1b7\x1b8\x1b(B\x1b)0\x1bM\x1b=\x1b>",
        b"\x1b[!p\x1b[4 q\x1b[s\x1b[u",
    ],
)
def test_text_colours_and_movement_stay(kept: bytes) -> None:
    assert shown(kept) == kept


@pytest.mark.parametrize(
    "dropped",
    [
        b"\x1b]0;a title\x07",
        b"\x1b]2;a title\x1b\\",
        b"\x1b]8;;https://evil.example\x1b\\",
        b"\x1b]52;c;cm0gLXJmIH4=\x07",
        b"\x1b]4;1;rgb:00/00/00\x1b\\",
        b'\x1bP$q"p\x1b\\',
        b"\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\\x1b\\",
        b"\x1b_application\x1b\\",
        b"\x1b^private\x1b\\",
        b"\x1bXstring\x1b\\",
        b"\xc2\x9d52;c;eA==\xc2\x9c",
        b"\xc2\x9d0;title\x07",
        b"\xc2\x90q\xc2\x9c",
        b"\x1b[c\x1b[>c\x1b[=c\x1b[6n\x1b[?6n\x1b[21t\x1b[x\x1b[>q\x1b[?2026$p\x1b[1;1;1;1;1;1*y",
        b"\x1bZ\x05",
        b"\xc2\x9b6n\xc2\x9b21t",
        b"\x1b%@\x1b%G\x1b%/G",
        b"\x1b[5i\x1b[?5i",
        b"\x1b[?u\x1b[>1u\x1b[1$u\x1b[1$w\x1b[1#R\x1b[1;1;1;1#|\x1b['|",
    ],
)
def test_what_reaches_beyond_the_screen_is_dropped(dropped: bytes) -> None:
    assert shown(b"a" + dropped + b"b").replace(b"\x1b\\", b"") == b"ab"


def test_an_endless_string_costs_nothing_and_its_end_is_found() -> None:
    escapes = Escapes()
    assert escapes.feed(b"before\x1b]0;") == b"before"
    for _ in range(50):
        assert escapes.feed(b"x" * 100_000) == b""
    assert len(escapes._held) < 100
    assert escapes.feed(b"\x07after") == b"after"


def test_a_csi_of_any_length_is_bounded() -> None:
    assert len(shown(b"\x1b[" + b"1;" * 10_000 + b"mtext")) < 25_000


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.sampled_from(
            [b"\x1b", b"]", b"[", b"52;c;", b"\xc2", b"\x9d", b"\x07", b"\x1b\\", b"6n"]
        ),
    ),
    max_size=30,
)


@given(PIECES)
def test_how_the_stream_is_cut_makes_no_difference(pieces: list[bytes]) -> None:
    escapes = Escapes()
    assert b"".join(map(escapes.feed, pieces)) == shown(b"".join(pieces))


@given(PIECES)
def test_no_string_and_no_question_comes_through(pieces: list[bytes]) -> None:
    out = shown(b"".join(pieces))
    for introducer in (b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX", b"\x1bZ", b"\xc2\x9d"):
        assert introducer not in out
    text = out.decode("utf-8", "replace")
    assert not any("\x80" <= c <= "\x9f" for c in text)
    for found in CSI.findall(text):
        assert found[-1] not in "cntx"


@given(st.binary(max_size=200))
def test_what_passed_once_passes_again(data: bytes) -> None:
    once = shown(data)
    assert shown(once) == once
