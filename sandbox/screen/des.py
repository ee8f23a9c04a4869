"""DES, only because the VNC password challenge (RFC 6143, 7.2.2) is made of it; never a safeguard.

The standard library has no DES. Sixteen bytes are enciphered once per connection, so this is
written to be read beside FIPS 46-3: blocks are lists of bits, tables count from 1.
"""

from __future__ import annotations

from collections.abc import Iterable

_IP = [first - 8 * i for first in (58, 60, 62, 64, 57, 59, 61, 63) for i in range(8)]
_FP = [_IP.index(i) + 1 for i in range(1, 65)]
_E = [(4 * row + column - 1) % 32 + 1 for row in range(8) for column in range(6)]
_P = [16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10]
_P += [2, 8, 24, 14, 32, 27, 3, 9, 19, 13, 30, 6, 22, 11, 4, 25]
_PC1 = [
    57,
    49,
    41,
    33,
    25,
    17,
    9,
    1,
    58,
    50,
    42,
    34,
    26,
    18,
    10,
    2,
    59,
    51,
    43,
    35,
    27,
    19,
    11,
    3,
]
_PC1 += [
    60,
    52,
    44,
    36,
    63,
    55,
    47,
    39,
    31,
    23,
    15,
    7,
    62,
    54,
    46,
    38,
    30,
    22,
    14,
    6,
    61,
    53,
    45,
]
_PC1 += [37, 29, 21, 13, 5, 28, 20, 12, 4]
_PC2 = [
    14,
    17,
    11,
    24,
    1,
    5,
    3,
    28,
    15,
    6,
    21,
    10,
    23,
    19,
    12,
    4,
    26,
    8,
    16,
    7,
    27,
    20,
    13,
    2,
]
_PC2 += [
    41,
    52,
    31,
    37,
    47,
    55,
    30,
    40,
    51,
    45,
    33,
    48,
    44,
    49,
    39,
    56,
    34,
    53,
    46,
    42,
    50,
    36,
]
_PC2 += [29, 32]
_SHIFTS = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1]
# One hexadecimal digit per entry: four rows of sixteen for each of the eight boxes.
_S = [
    "e4d12fb83a6c59070f74e2d1a6cb953841e8d62bfc973a50fc8249175b3ea06d",
    "f18e6b34972dc05a3d47f28ec01a69b50e7ba4d158c6932fd8a13f42b67c05e9",
    "a09e63f51dc7b428d709346a285ecbf1d6498f30b12c5ae71ad069874fe3b52c",
    "7de3069a1285bc4fd8b56f03472c1ae9a690cb7df13e52843f06a1d8945bc72e",
    "2c417ab6853fd0e9eb2c47d150fa3986421bad78f9c5630eb8c71e2d6f09a453",
    "c1af92680d34e75baf427c9561de0b389ef528c3704a1db6432c95fabe17608d",
    "4b2ef08d3c975a61d0b7491ae35c2f8614bdc37eaf6805926bd814a7950fe23c",
    "d2846fb1a93e50c71fd8a374c56b0e927b419ce206adf35821e74a8dfc90356b",
]


def encrypt_block(key: bytes, block: bytes) -> bytes:
    """Encipher one 8-byte `block` with an 8-byte `key`; parity bits of the key are ignored."""
    left, right = _halves(_pick(_bits(block), _IP))
    c, d = _halves(_pick(_bits(key), _PC1))
    for shift in _SHIFTS:
        c, d = c[shift:] + c[:shift], d[shift:] + d[:shift]
        mixed = _xor(_pick(right, _E), _pick(c + d, _PC2))
        substituted: list[int] = []
        for box, table in enumerate(_S):
            b = mixed[6 * box : 6 * box + 6]
            entry = 32 * b[0] + 16 * b[5] + 8 * b[1] + 4 * b[2] + 2 * b[3] + b[4]
            value = int(table[entry], 16)
            substituted += [value >> 3 & 1, value >> 2 & 1, value >> 1 & 1, value & 1]
        left, right = right, _xor(left, _pick(substituted, _P))
    return _octets(_pick(right + left, _FP))


def vnc_response(password: str, challenge: bytes) -> bytes:
    """Answer a 16-byte VNC challenge; only the first 8 characters of `password` count.

    VNC takes the bits of each key byte in the reverse order.
    """
    padded = password.encode("latin-1")[:8].ljust(8, b"\0")
    key = bytes(int(f"{octet:08b}"[::-1], 2) for octet in padded)
    return encrypt_block(key, challenge[:8]) + encrypt_block(key, challenge[8:16])


def _bits(data: bytes) -> list[int]:
    return [octet >> shift & 1 for octet in data for shift in range(7, -1, -1)]


def _octets(bits: list[int]) -> bytes:
    return int("".join(map(str, bits)), 2).to_bytes(len(bits) // 8, "big")


def _pick(bits: list[int], table: Iterable[int]) -> list[int]:
    return [bits[i - 1] for i in table]


def _xor(a: list[int], b: list[int]) -> list[int]:
    return [x ^ y for x, y in zip(a, b, strict=True)]


def _halves(bits: list[int]) -> tuple[list[int], list[int]]:
    middle = len(bits) // 2
    return bits[:middle], bits[middle:]
