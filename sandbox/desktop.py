"""GuestDesktop: one computer behind its guest's unix socket. Every provider with a guest uses it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import httpx

from sandbox.provider import (
    ActionFailed,
    ActionResult,
    DesktopLost,
    Frame,
    Handle,
    SandboxError,
    StaleLease,
)
from trajectory import Action, Element, action_to_dict

# A guest on this host answers in milliseconds; typing a page of text may take a second or two.
_TIMEOUT = httpx.Timeout(20.0, connect=2.0)
_SLACK_S = 5.0
_JsonObject = dict[str, Any]


class GuestDesktop:
    """Speaks to one guest over HTTP; safe to share between threads (httpx keeps a pool)."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._http = httpx.Client(
            # No TLS on a unix socket: making its context would cost 40 ms a connection.
            transport=httpx.HTTPTransport(uds=handle.guest_socket, verify=False),
            base_url="http://guest",
            timeout=_TIMEOUT,
            trust_env=False,
            verify=False,
        )
        try:
            health = self.health()
        except BaseException:
            self._http.close()
            raise
        if health["boot_id"] != handle.boot_id:
            self._http.close()
            raise DesktopLost(f"{handle.name} was started again since: its boot_id changed")
        self.width = int(str(health["width"]))
        self.height = int(str(health["height"]))

    def health(self) -> dict[str, object]:
        """Return {"boot_id", "epoch", "ready", "width", "height", "limits", "uptime_s"}."""
        return self._ask("GET", "/v1/health")[0]

    def fence(self, epoch: int) -> None:
        """Raise the guest's epoch to `epoch`; raises StaleLease if it is above that already."""
        now = self._post("/v1/epoch", epoch=epoch)["epoch"]
        if now != epoch:
            raise StaleLease(f"{self._handle.name} is at epoch {now}, above {epoch}")

    def observe(self, *, elements: bool = False) -> Frame:
        """Return the picture on the screen now, with the elements of the page if asked for."""
        header, png = self._ask("POST", "/v1/observe", {"elements": elements})
        found = header["elements"]
        return Frame(
            png=png,
            width=header["width"],
            height=header["height"],
            elements=None if found is None else tuple(_element(e) for e in found),
            url=header["url"],
            captured_at=header["captured_at"],
            seq=header["seq"],
        )

    def perform(self, action: Action, *, epoch: int, action_id: str) -> ActionResult:
        """Do `action` once; raises StaleLease, ActionFailed, DesktopLost."""
        # Waiting and commands last as long as they say.
        duration_ms = getattr(action, "duration_ms", 0) + getattr(action, "timeout_ms", 0)
        return _result(
            self._post(
                "/v1/perform",
                duration_ms / 1000,
                epoch=epoch,
                action_id=action_id,
                action=action_to_dict(action),
            )
        )

    def settle(self, *, quiet_ms: int = 150, max_ms: int = 2000) -> bool:
        """Wait until the picture has not changed for `quiet_ms`; False if `max_ms` passed first."""
        answer = self._post("/v1/settle", max_ms / 1000, quiet_ms=quiet_ms, max_ms=max_ms)
        return bool(answer["settled"])

    def shell(
        self, command: str, *, epoch: int, action_id: str, timeout_ms: int = 30_000
    ) -> ActionResult:
        """Run `command` once; exit_code 124 if it had to be ended at `timeout_ms`."""
        return _result(
            self._post(
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
        self._post("/v1/launch", epoch=epoch, action_id=action_id, argv=list(argv))

    def read_file(self, path: str) -> bytes:
        """Return a file of the desktop's home; raises ActionFailed if there is none."""
        return self._ask("POST", "/v1/files/read", {"path": path})[1]

    def write_file(self, path: str, data: bytes, *, epoch: int) -> None:
        """Write a file of the desktop's home, with the folders above it."""
        text = base64.b64encode(data).decode()
        self._post("/v1/files/write", epoch=epoch, path=path, data=text)

    def evaluate(self, expression: str) -> object:
        """Evaluate JavaScript in the page in front; raises ActionFailed if there is no page."""
        value: object = self._post("/v1/page/evaluate", expression=expression)["value"]
        return value

    def close(self) -> None:
        """Let go of the connection; the computer goes on."""
        self._http.close()

    # -- the wire --------------------------------------------------------------------------

    def _post(self, path: str, lasts_s: float = 0.0, /, **body: object) -> _JsonObject:
        return self._ask("POST", path, body, lasts_s=lasts_s)[0]

    def _ask(
        self, method: str, path: str, body: _JsonObject | None = None, *, lasts_s: float = 0.0
    ) -> tuple[_JsonObject, bytes]:
        read_s = max(20.0, lasts_s + _SLACK_S)
        try:
            answer = self._http.request(
                method, path, json=body, timeout=httpx.Timeout(read_s, connect=2.0)
            )
            length = int(answer.headers.get("X-Header-Length", len(answer.content)))
            header: _JsonObject = json.loads(answer.content[:length])
        except (httpx.HTTPError, ValueError) as error:
            raise DesktopLost(f"{self._handle.name} does not answer {path}: {error!r}") from error
        if answer.status_code == 200:
            return header, answer.content[length:]
        raise _refusal(answer.status_code, header)


def _refusal(status: int, answer: _JsonObject) -> SandboxError:
    detail = str(answer.get("detail", ""))
    if answer.get("error") == "stale_lease":
        return StaleLease(detail)
    if status < 500:
        return ActionFailed(detail)
    return SandboxError(f"the guest failed: {detail}")


def _result(answer: _JsonObject) -> ActionResult:
    return ActionResult(
        output=answer["output"], exit_code=answer["exit_code"], replayed=answer["replayed"]
    )


def _element(record: _JsonObject) -> Element:
    left, top, width, height = record["box"]
    return Element(
        role=record["role"],
        name=record["name"],
        box=(left, top, width, height),
        value=record["value"],
        focused=record["focused"],
    )
