"""What a guest answered, read field by field: a hostile one may say anything of any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sandbox.provider import DesktopLost
from trajectory import Element

JsonObject = dict[str, Any]
MAX_TEXT = 4 * 1024 * 1024
MAX_RECORDS = 20_000
_MOST = 2**53  # a whole number of JSON has no bound, and may be more than a float holds


def plain(said: str) -> str:
    """Return a text as it can be kept, with "?" for what can't.

    JSON can carry half a surrogate pair, which nothing after us can encode, and U+0000, which
    PostgreSQL does not take.
    """
    return said.replace("\0", "?").encode("utf-8", "replace").decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Answer:
    """One JSON object of the guest called `name`; every reader raises DesktopLost naming the field."""

    name: str
    fields: JsonObject

    def text(self, key: str, *, limit: int = MAX_TEXT) -> str:
        """Return a string of at most `limit` characters; what can't be kept as text becomes "?"."""
        value = self.fields.get(key)
        if not isinstance(value, str) or len(value) > limit:
            raise self._nonsense(key)
        return plain(value)

    def number(self, key: str) -> int:
        """Return a whole number that a database holds, not negative."""
        value = self.fields.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
            raise self._nonsense(key)
        return value

    def decimal(self, key: str) -> float:
        """Return a number between -2^53 and 2^53."""
        value = self.fields.get(key)
        if not isinstance(value, int | float) or not abs(value) < _MOST:
            raise self._nonsense(key)
        return float(value)

    def flag(self, key: str) -> bool:
        value = self.fields.get(key)
        if not isinstance(value, bool):
            raise self._nonsense(key)
        return value

    def exit_code(self) -> int | None:
        """Return what a program ended with, -64 to 255, or None."""
        value = self.fields.get("exit_code")
        if value is not None and (not isinstance(value, int) or not -64 <= value <= 255):
            raise self._nonsense("exit_code")
        return value

    def box(self, key: str = "box") -> tuple[int, int, int, int]:
        """Return (left, top, width, height) in pixels; a window may reach out of the frame."""
        value = self.fields.get(key)
        if (
            not isinstance(value, list)
            or len(value) != 4
            or not all(isinstance(n, int) and abs(n) < 1 << 20 for n in value)
        ):
            raise self._nonsense(key)
        left, top, width, height = value
        return left, top, width, height

    def records(self, key: str, *, limit: int = MAX_RECORDS) -> list[Answer]:
        value = self.fields.get(key)
        if not isinstance(value, list) or len(value) > limit:
            raise self._nonsense(key)
        if not all(isinstance(record, dict) for record in value):
            raise self._nonsense(key)
        return [Answer(self.name, record) for record in value]

    def numbers(self, key: str, *, limit: int = MAX_RECORDS) -> list[int]:
        value = self.fields.get(key)
        if not isinstance(value, list) or len(value) > limit:
            raise self._nonsense(key)
        return [Answer(self.name, {key: item}).number(key) for item in value]

    def element(self) -> Element:
        """Return one element of a page or a tree."""
        return Element(
            role=self.text("role"),
            name=self.text("name"),
            box=self.box(),
            value=self.text("value"),
            focused=self.flag("focused"),
        )

    def _nonsense(self, key: str) -> DesktopLost:
        return DesktopLost(
            f"{self.name} does not answer as a guest does: {key} is missing or wrong"
        )
