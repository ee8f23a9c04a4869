"""The accessibility bus: questions with a deadline, and the signals in between.

All questions of one step are sent before the first answer is read. Programs may be slow, broken or hostile:
counts, sizes and times are bounded.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from jeepney import (
    DBusAddress,
    HeaderFields,
    MatchRule,
    Message,
    MessageType,
    Properties,
    message_bus,
    new_method_call,
)
from jeepney.io.blocking import DBusConnection, open_dbus_connection

from recorder.capture.errors import CaptureError

A11Y = "org.a11y.atspi."
_STATUS = DBusAddress("/org/a11y/bus", bus_name="org.a11y.Bus", interface="org.a11y.Status")
_BUS = DBusAddress("/org/a11y/bus", bus_name="org.a11y.Bus", interface="org.a11y.Bus")
_CHILDREN, _SIGNALS = 500, 200
_CONNECT_S, _FOLLOW_S = 5.0, 0.2
FAILURES = (OSError, EOFError, KeyError, RuntimeError, ValueError, TypeError, IndexError)
"""What a broken bus or a broken program makes of a question."""


class Node(NamedTuple):
    """A widget: its program's name on the bus and its path there."""

    bus: str
    path: str


ROOT = Node(f"{A11Y}Registry", "/org/a11y/atspi/accessible/root")


class Bus:
    """A connection for one thread. Raises CaptureError where there is no accessibility bus."""

    def __init__(self) -> None:
        if "DBUS_SESSION_BUS_ADDRESS" not in os.environ:
            raise CaptureError("this desktop has no session bus")
        try:
            self._was_enabled = _enable(True)
            with open_dbus_connection("SESSION") as session:
                answer = session.send_and_get_reply(
                    new_method_call(_BUS, "GetAddress"), timeout=_CONNECT_S
                )
            if answer.header.message_type is not MessageType.method_return:
                raise CaptureError("at-spi2-core is not installed: apt-get install at-spi2-core")
            self._connection: DBusConnection = open_dbus_connection(str(answer.body[0]))
        except FAILURES as failure:
            raise CaptureError(f"no accessibility bus: {failure!r}") from None
        self.signals: deque[Message] = deque(maxlen=_SIGNALS)
        self.dropped = False  # whether there was no room for a signal

    def fileno(self) -> int:
        return int(self._connection.sock.fileno())

    def listen(self, event: str) -> None:
        """Have programs tell an event such as "object:state-changed:focused"."""
        category, member, *detail = event.split(":")
        interface = f"{A11Y}Event.{category.capitalize()}"
        member = "".join(part.capitalize() for part in member.split("-"))
        rule = MatchRule(type="signal", interface=interface, member=member)
        if detail:
            rule.add_arg_condition(0, detail[0])
        registry = DBusAddress(
            "/org/a11y/atspi/registry", bus_name=ROOT.bus, interface=f"{A11Y}Registry"
        )
        ask = new_method_call(registry, "RegisterEvent", "s", (event,))
        self.ask([message_bus.AddMatch(rule), ask], time.monotonic() + _CONNECT_S)

    def follow(self, node: Node, *, told: bool) -> None:
        """Have one widget tell what goes into its text and out of it; or no more, unless `told`."""
        rule = MatchRule(
            type="signal", sender=node.bus, path=node.path, interface=f"{A11Y}Event.Object",
            member="TextChanged",
        )  # fmt: skip
        registry = DBusAddress(
            "/org/a11y/atspi/registry", bus_name=ROOT.bus, interface=f"{A11Y}Registry"
        )
        verb = "RegisterEvent" if told else "DeregisterEvent"
        match = message_bus.AddMatch(rule) if told else message_bus.RemoveMatch(rule)
        ask = new_method_call(registry, verb, "s", ("object:text-changed",))
        self.ask([match, ask], time.monotonic() + _FOLLOW_S)

    def drain(self) -> None:
        """Gather the signals that have come; never waits."""
        with suppress(TimeoutError):
            while True:
                self._take(self._connection.receive(timeout=0))

    def ask(self, messages: Sequence[Message], deadline: float) -> list[Any]:
        """Return the body of each answer, None for a refusal or one not there by `deadline`."""
        bodies: dict[int, Any] = {}
        waiting = set()
        for message in messages:
            serial = next(self._connection.outgoing_serial)
            waiting.add(serial)
            bodies[serial] = None
            self._connection.send(message, serial=serial)
        while waiting and (left := deadline - time.monotonic()) > 0:
            with suppress(TimeoutError):
                answer = self._connection.receive(timeout=left)
                serial = answer.header.fields.get(HeaderFields.reply_serial, 0)
                if serial not in waiting:
                    self._take(answer)
                    continue
                waiting.discard(serial)
                if answer.header.message_type is MessageType.method_return:
                    bodies[serial] = answer.body
        return list(bodies.values())

    def close(self) -> None:
        with suppress(*FAILURES):
            self._connection.close()
            if not self._was_enabled:
                _enable(False)

    def _take(self, message: Message) -> None:
        if message.header.message_type is MessageType.signal:
            self.dropped |= len(self.signals) == _SIGNALS
            self.signals.append(message)


def call(node: Node, interface: str, method: str, signature: str = "", body: Any = ()) -> Message:
    address = DBusAddress(node.path, bus_name=node.bus, interface=A11Y + interface)
    return new_method_call(address, method, signature or None, body)


def name_of(node: Node) -> Message:
    address = DBusAddress(node.path, bus_name=node.bus, interface=f"{A11Y}Accessible")
    return Properties(address).get("Name")


def process_of(node: Node) -> Message:
    broker = DBusAddress(
        "/org/freedesktop/DBus", bus_name="org.freedesktop.DBus", interface="org.freedesktop.DBus"
    )
    return new_method_call(broker, "GetConnectionUnixProcessID", "s", (node.bus,))


def children(body: Any) -> list[Node]:
    return [Node(str(bus), str(path)) for bus, path in body[0][:_CHILDREN]] if body else []


def states(body: Any) -> frozenset[int]:
    """Return the bits of a state set: two words of 32."""
    words = body[0] if body else ()
    return frozenset(n for n in range(64) if len(words) > n // 32 and words[n // 32] >> n % 32 & 1)


def text(body: Any, limit: int = 200) -> str:
    """Return the text of an answer: of a method's, or of a property's, which comes as a variant."""
    if not body:
        return ""
    value = body[0][1] if isinstance(body[0], tuple) else body[0]
    return (
        "".join(c if c.isprintable() else " " for c in value[:limit])
        if isinstance(value, str)
        else ""
    )


def _enable(wanted: bool) -> bool:
    """Ask programs to tell about their widgets; return whether they had been asked before."""
    with open_dbus_connection("SESSION") as session:
        status = Properties(_STATUS)
        answer = session.send_and_get_reply(status.get("IsEnabled"), timeout=_CONNECT_S)
        before = answer.header.message_type is MessageType.method_return and bool(answer.body[0][1])
        if before != wanted:
            session.send_and_get_reply(status.set("IsEnabled", "b", wanted), timeout=_CONNECT_S)
    return before
