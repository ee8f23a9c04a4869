"""The Desktop protocol over a guest's socket: what every computer with a guest can do."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence

from sandbox.desktop.answer import Answer
from sandbox.desktop.wire import Wire
from sandbox.dial import Gateway
from sandbox.provider import ActionResult, DesktopLost, Frame, Handle, StaleLease
from trajectory import Action, action_to_dict

_MAX_PIXELS = 8192


class GuestScreen:
    """Speaks to one guest; safe to share between threads."""

    def __init__(
        self,
        handle: Handle,
        *,
        cause: Callable[[], str] = lambda: "",
        gateway: Gateway | None = None,
    ) -> None:
        """`cause` says why a guest that does not answer has ended, "" if nobody knows.

        `gateway` leads to a guest on another host.
        """
        self._handle = handle
        self._wire = Wire(handle, cause, gateway)
        try:
            health, _ = self._wire.ask("GET", "/v1/health")
            if health.text("boot_id") != handle.boot_id:
                raise DesktopLost(f"{handle.name} was started again since: its boot_id changed")
            self.width, self.height = health.number("width"), health.number("height")
            if not (0 < self.width <= _MAX_PIXELS and 0 < self.height <= _MAX_PIXELS):
                raise DesktopLost(f"{handle.name} says it is {self.width}x{self.height}")
        except BaseException:
            self._wire.close()
            raise

    def health(self) -> dict[str, object]:
        """Return {"boot_id", "epoch", "ready", "width", "height", "limits", "uptime_s"}."""
        return self._wire.ask("GET", "/v1/health")[0].fields

    def fence(self, epoch: int) -> None:
        """Raise the guest's epoch to `epoch`; raises StaleLease if it is above that already."""
        now = self._wire.post("/v1/epoch", epoch=epoch).number("epoch")
        if now != epoch:
            raise StaleLease(f"{self._handle.name} is at epoch {now}, above {epoch}")

    def observe(self, *, elements: bool = False) -> Frame:
        """Return the picture on the screen now, with the elements of the page if asked for."""
        header, png = self._wire.ask("POST", "/v1/observe", {"elements": elements})
        return Frame(
            png=png,
            width=header.number("width"),
            height=header.number("height"),
            elements=tuple(e.element() for e in header.records("elements")) if elements else None,
            url=header.text("url"),
            captured_at=header.decimal("captured_at"),
            seq=header.number("seq"),
        )

    def perform(self, action: Action, *, epoch: int, action_id: str) -> ActionResult:
        """Do `action` once; raises StaleLease, ActionFailed, DesktopLost."""
        # Waiting and commands last as long as they say.
        duration_ms = getattr(action, "duration_ms", 0) + getattr(action, "timeout_ms", 0)
        return result(
            self._wire.post(
                "/v1/perform",
                duration_ms / 1000,
                epoch=epoch,
                action_id=action_id,
                action=action_to_dict(action),
            )
        )

    def settle(self, *, quiet_ms: int = 150, max_ms: int = 2000) -> bool:
        """Wait until the picture has not changed for `quiet_ms`; False if `max_ms` passed first."""
        answer = self._wire.post("/v1/settle", max_ms / 1000, quiet_ms=quiet_ms, max_ms=max_ms)
        return answer.flag("settled")

    def shell(
        self, command: str, *, epoch: int, action_id: str, timeout_ms: int = 30_000
    ) -> ActionResult:
        """Run `command` once; exit_code 124 if it had to be ended at `timeout_ms`."""
        return result(
            self._wire.post(
                "/v1/shell",
                timeout_ms / 1000,
                epoch=epoch,
                action_id=action_id,
                command=command,
                timeout_ms=timeout_ms,
            )
        )

    def launch(self, argv: Sequence[str], *, epoch: int, action_id: str) -> None:
        """Start a program and leave it running; its window may come later."""
        self._wire.post("/v1/launch", epoch=epoch, action_id=action_id, argv=list(argv))

    def read_file(self, path: str) -> bytes:
        """Return a file of the desktop's home; raises ActionFailed if there is none."""
        return self._wire.ask("POST", "/v1/files/read", {"path": path})[1]

    def write_file(self, path: str, data: bytes, *, epoch: int) -> None:
        """Write a file of the desktop's home, with the folders above it."""
        text = base64.b64encode(data).decode()
        self._wire.post("/v1/files/write", epoch=epoch, path=path, data=text)

    def evaluate(self, expression: str) -> object:
        """Evaluate JavaScript in the page in front; raises ActionFailed if there is no page."""
        value: object = self._wire.post("/v1/page/evaluate", expression=expression).fields.get(
            "value"
        )
        return value

    def close(self) -> None:
        """Let go of the connection; the computer goes on."""
        self._wire.close()


def result(answer: Answer) -> ActionResult:
    return ActionResult(
        output=answer.text("output"),
        exit_code=answer.exit_code(),
        replayed=answer.flag("replayed"),
    )
