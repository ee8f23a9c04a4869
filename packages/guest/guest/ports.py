"""Which TCP ports listen in the computer, from /proc/net: format in the kernel's proc_net_tcp.rst."""

from __future__ import annotations

from pathlib import Path

from guest.browser import CDP_PORT

_LISTEN = "0A"
# The loopback and "any" addresses of both families, as /proc writes them: words of 4 bytes, reversed.
_REACHABLE = {
    "0100007F",
    "00000000",
    "0" * 32,
    "00000000000000000000000001000000",
}


def listening() -> list[int]:
    """Return what can be reached on loopback, but for the port that the guest itself uses."""
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", name).read_text().splitlines()[1:]
        except FileNotFoundError:  # a kernel without IPv6
            continue
        for line in lines:
            words = line.split()
            address, _, port = words[1].partition(":")
            if words[3] == _LISTEN and address in _REACHABLE:
                found.add(int(port, 16))
    return sorted(found - {CDP_PORT})
