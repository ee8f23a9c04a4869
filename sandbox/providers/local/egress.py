"""Where a sandbox may connect to: names that are allowed, addresses that never are.

Pure. Addresses are judged after the name was looked up, and the very address that was judged is the one
connected to, so a name that changes its answer gains nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

PORTS = (80, 443)
_NAME = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]{0,62}\.)*[a-z0-9_][a-z0-9_-]{0,62}|[a-z0-9]")
# Global by the registries, yet a cloud's inside: Azure's host, and IPv4 behind NAT64.
_AZURE = ip_address("168.63.129.16")
_NAT64 = ip_network("64:ff9b::/96")


class Refused(Exception):
    """A destination that the sandbox may not reach; the message says why."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`name` is a host, or *.DOMAIN for all below it (not itself); `ports` those that may be used."""

    name: str
    ports: tuple[int, ...] = PORTS

    def covers(self, host: str, port: int) -> bool:
        if port not in self.ports:
            return False
        if self.name.startswith("*."):
            return host.endswith(self.name[1:])
        return host == self.name


def parse(text: str) -> Rule:
    """Return the rule that `text` says: HOST, *.DOMAIN, each with :PORT for another port than 80, 443.

    Raises ValueError naming it.
    """
    name, colon, port = text.strip().lower().rstrip(".").partition(":")
    if not _NAME.fullmatch(name) or (colon and not (port.isdigit() and 0 < int(port) < 65536)):
        raise ValueError(f"{text!r} names no host: write example.org, *.example.org or host:8080")
    return Rule(name, (int(port),) if colon else PORTS)


def check_name(rules: tuple[Rule, ...], host: str, port: int) -> str:
    """Return the host's canonical spelling; raises Refused unless a rule covers it."""
    name = host.lower().rstrip(".")
    if not any(rule.covers(name, port) for rule in rules):
        raise Refused(f"{name[:253]}:{port} is not on this sandbox's list")
    return name


def check_address(text: str) -> None:
    """Raise Refused for an address that is not of the public internet.

    Private ranges, loopback, link-local (cloud metadata), shared, multicast and reserved ones, also
    where they hide in an IPv6 address.
    """
    address = ip_address(text.partition("%")[0])
    for inner in (address, *_hidden(address)):
        if not inner.is_global or inner.is_multicast or inner == _AZURE:
            raise Refused(f"{text} is no public address")


def _hidden(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses inside an IPv6 one: mapped, 6to4, Teredo, NAT64."""
    if isinstance(address, IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        found.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [inner for inner in found if inner is not None]
