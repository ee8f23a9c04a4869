"""One request as its route sees it: the computer, the JSON that was asked, the bytes behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from guest.errors import GuestError
from guest.fencing import Result

if TYPE_CHECKING:
    from guest.computer import Computer
    from guest.server import Server

JsonObject: TypeAlias = dict[str, Any]
Answer: TypeAlias = JsonObject | tuple[JsonObject, bytes]


@dataclass(frozen=True, slots=True)
class Call:
    """The fields of a request; each reader raises GuestError naming a field that is not as it must."""

    server: Server
    body: JsonObject
    payload: bytes = b""

    @property
    def computer(self) -> Computer:
        return self.server.computer

    @property
    def epoch(self) -> int:
        return self.number("epoch")

    @property
    def action_id(self) -> str:
        action_id = self.text("action_id")
        if not 0 < len(action_id) <= 128:
            raise GuestError("action_id must have 1 to 128 characters")
        return action_id

    def number(self, name: str) -> int:
        value = self.body.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise GuestError(f"{name} must be a whole number, not negative")
        return value

    def text(self, name: str) -> str:
        value = self.body.get(name)
        if not isinstance(value, str):
            raise GuestError(f"{name} must be a string")
        return value

    def texts(self, name: str) -> list[str]:
        value = self.body.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise GuestError(f"{name} must be a list of strings")
        return value


Route: TypeAlias = Callable[[Call], Answer]


def done(result: Result, replayed: bool) -> JsonObject:
    """Return the answer to something that went through the ledger."""
    return {"output": result.output, "exit_code": result.exit_code, "replayed": replayed}
