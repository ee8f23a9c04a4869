"""The relay's reading of RFB: messages, whatever the split; hostile bytes; the two handshakes."""

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.screen import rfb
from sandbox.screen.des import encrypt_block, vnc_response
from sandbox.screen.rfb import (
    BrowserHandshake,
    ClientMessages,
    DesktopHandshake,
    Held,
    Key,
    Pointer,
    ProtocolError,
)

u8, u16, u32 = st.integers(0, 255), st.integers(0, 65535), st.integers(0, 2**32 - 1)
NO_EXTENDED_MOUSE = st.integers(-(2**31), 2**31 - 1).filter(
    lambda encoding: encoding != rfb.EXTENDED_MOUSE_BUTTONS
)

pixel_format = st.binary(min_size=19, max_size=19).map(lambda body: b"\x00" + body)
set_encodings = st.lists(NO_EXTENDED_MOUSE, max_size=30).map(
    lambda codes: struct.pack(">BxH", 2, len(codes)) + struct.pack(f">{len(codes)}i", *codes)
)
update_request = st.binary(min_size=9, max_size=9).map(lambda body: b"\x03" + body)
key = st.builds(Key, u32, st.booleans()).map(rfb.encode_input)
scan_code = st.builds(Key, u32, st.booleans(), st.integers(1, 2**32 - 1)).map(rfb.encode_input)
pointer = st.builds(Pointer, u16, u16, u8).map(rfb.encode_input)
cut_text = st.tuples(st.binary(max_size=200), st.sampled_from([1, -1])).map(
    lambda pair: struct.pack(">Bxxxi", 6, pair[1] * len(pair[0])) + pair[0]
)
updates = st.binary(min_size=9, max_size=9).map(lambda body: b"\x96" + body)
fence = st.tuples(u32, st.binary(max_size=64)).map(
    lambda pair: struct.pack(">BxxxIB", 248, pair[0], len(pair[1])) + pair[1]
)
desktop_size = st.integers(0, 16).flatmap(
    lambda count: st.binary(min_size=16 * count, max_size=16 * count).map(
        lambda body: struct.pack(">BxHHBx", 251, 800, 600, count) + body
    )
)
message = st.one_of(
    pixel_format,
    set_encodings,
    update_request,
    key,
    scan_code,
    pointer,
    cut_text,
    updates,
    fence,
    desktop_size,
)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(st.lists(message, max_size=20), st.lists(st.integers(0, 10_000), max_size=30))
def test_any_split_gives_the_same_messages(messages: list[bytes], cuts: list[int]) -> None:
    parser = ClientMessages()
    out = [m for piece in split(b"".join(messages), cuts) for m in parser.feed(piece)]
    assert out == messages


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=10))
def test_hostile_bytes_are_cut_the_same_way_or_refused(data: bytes, cuts: list[int]) -> None:
    def run(pieces: list[bytes]) -> tuple[bytes, bool]:
        parser, out = ClientMessages(), b""
        try:
            for piece in pieces:
                out += b"".join(parser.feed(piece))
        except ProtocolError:
            return out, True
        return out, False

    whole, refused = run([data])
    out, refused_too = run(split(data, cuts))
    assert refused == refused_too
    assert out.startswith(whole)  # a refusal of the whole buffer forwards none of it


@given(st.lists(message, max_size=10))
def test_a_viewer_gets_no_input_through(messages: list[bytes]) -> None:
    kept = [m for m in ClientMessages().feed(b"".join(messages)) if m[0] not in rfb.INPUT]
    assert kept == [m for m in messages if m[0] not in (4, 5, 6, 251, 255)]


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"\x07", "type 7"),
        (b"\xfa\x00\x01\x02", "type 250"),
        (b"\x02\x00\xff\xff", "encodings"),
        (struct.pack(">Bxxxi", 6, 2**30), "clipboard"),
        (struct.pack(">Bxxxi", 6, -(2**31)), "clipboard"),
        (b"\xf8" + bytes(7) + b"\x41", "fence"),
        (b"\xfb" + bytes(5) + b"\x11", "screens"),
        (b"\xff\x01", "QEMU"),
    ],
)
def test_a_message_out_of_bounds_is_named(data: bytes, named: str) -> None:
    with pytest.raises(ProtocolError, match=named):
        ClientMessages().feed(data)


def test_extended_mouse_buttons_are_never_asked_for() -> None:
    asked = struct.pack(">BxH4i", 2, 4, 7, -316, 16, -316)
    assert ClientMessages().feed(asked) == [struct.pack(">BxH2i", 2, 2, 7, 16)]


keysym = st.integers(0, 2**29 - 1)


@given(st.one_of(st.builds(Key, keysym, st.booleans(), u32), st.builds(Pointer, u16, u16, u8)))
def test_input_survives_its_encoding(event: Key | Pointer) -> None:
    assert rfb.decode_input(rfb.encode_input(event)) == event


def test_a_keysym_that_no_key_has_is_refused() -> None:
    with pytest.raises(ProtocolError, match="0xffffffff is no keysym"):
        rfb.decode_input(rfb.encode_input(Key(0xFFFFFFFF, True)))


def test_held_keys_and_buttons_are_let_go() -> None:
    held = Held()
    for event in (
        Key(0xFFE1, True),
        Key(0x41, True, 30),
        Pointer(5, 6, 1),
        Key(0x61, False, 30),
    ):
        held.apply(event)
    assert held.pressed(Pointer(5, 6, 5)) == 4
    assert held.let_go() == [Key(0xFFE1, False), Pointer(5, 6, 0)]
    assert held.let_go() == []


def test_des_matches_published_vectors() -> None:
    key, block = bytes.fromhex("133457799bbcdff1"), bytes.fromhex("0123456789abcdef")
    assert encrypt_block(key, block).hex() == "85e813540f0ab405"
    assert encrypt_block(bytes(8), bytes(8)).hex() == "8ca64de9c1b123a7"
    assert vnc_response("", bytes(16)).hex() == "8ca64de9c1b123a7" * 2


@given(st.lists(st.integers(0, 40), max_size=6))
def test_the_browser_is_let_in_without_a_password(cuts: list[int]) -> None:
    shake, reply, rest = BrowserHandshake(), b"", None
    for piece in split(rfb.VERSION + b"\x01\x01" + b"next", cuts):
        if rest is not None:
            rest += piece
            continue
        more, rest = shake.feed(piece)
        reply += more
    assert (reply, rest) == (b"\x01\x01" + bytes(4), b"next")


def test_the_desktop_is_answered_with_its_password() -> None:
    shake, challenge = DesktopHandshake("secret"), bytes(range(16))
    assert shake.feed(rfb.VERSION) == (rfb.VERSION, None)
    assert shake.feed(b"\x02\x01") == (b"", None)
    assert shake.feed(b"\x02") == (b"\x02", None)
    assert shake.feed(challenge) == (vnc_response("secret", challenge), None)
    assert shake.feed(bytes(4) + b"init") == (b"\x01", b"init")


def test_a_wrong_password_is_named() -> None:
    shake = DesktopHandshake("wrong")
    with pytest.raises(rfb.AuthenticationFailed):
        shake.feed(rfb.VERSION + b"\x01\x02" + bytes(16) + b"\0\0\0\1")
