"""What a desktop with programs has beyond its screen: files in parts, terminals, Python and more."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import asdict

from guest import clipboard, ports
from guest.accessibility import AccessibilityError
from guest.call import Call, JsonObject, Route, done
from guest.errors import ActionFailed, GuestError
from guest.fencing import Result
from guest.files import MAX_CHUNK

_POLL_S = 0.2
_MAX_WAIT_MS = 30_000


def read_part(call: Call) -> tuple[JsonObject, bytes]:
    data, size, version = call.computer.files.read_part(
        call.text("path"),
        offset=call.number("offset"),
        length=min(call.number("length"), MAX_CHUNK),
    )
    return {"size": size, "version": version}, data


def write_part(call: Call) -> JsonObject:
    if len(call.payload) > MAX_CHUNK:
        raise GuestError(f"a part has at most {MAX_CHUNK} bytes")
    with call.computer.gate.entered(call.epoch):
        call.computer.files.write_part(
            call.text("path"),
            call.payload,
            offset=call.number("offset"),
            upload=call.text("upload"),
            last=bool(call.body.get("last")),
        )
    return {}


def list_files(call: Call) -> JsonObject:
    return {"entries": [asdict(e) for e in call.computer.files.entries(call.text("path"))]}


def changed_files(call: Call) -> JsonObject:
    """Wait for a change at or after `since_us` that is not in `known`, for up to `wait_ms`."""
    path = call.text("path")
    since = call.number("since_us") if "since_us" in call.body else None
    known = set(call.texts("known"))
    deadline = time.monotonic() + min(call.number("wait_ms"), _MAX_WAIT_MS) / 1000
    while True:
        found = call.computer.files.changed(path, since_us=since)
        fresh = [e for e in found if f"{e.changed_us} {e.size} {e.path}" not in known]
        if fresh or time.monotonic() >= deadline:
            return {"entries": [asdict(entry) for entry in fresh]}
        time.sleep(_POLL_S)


def open_terminal(call: Call) -> JsonObject:
    def work() -> Result:
        return Result(
            call.computer.terminals.open(
                call.text("command"),
                epoch=call.epoch,
                columns=call.number("columns"),
                rows=call.number("rows"),
                timeout_ms=call.number("timeout_ms"),
            )
        )

    return done(*call.computer.ledger.once(call.action_id, work))


def write_terminal(call: Call) -> JsonObject:
    replayed = call.computer.terminals.write(
        call.text("terminal"),
        base64.b64decode(call.text("data")),
        epoch=call.epoch,
        action_id=call.action_id,
    )
    return {"replayed": replayed}


def read_terminal(call: Call) -> tuple[JsonObject, bytes]:
    terminal = call.computer.terminals.find(call.text("terminal"))
    data, offset, exit_code = terminal.read(call.number("offset"), call.number("wait_ms"))
    return {"offset": offset, "exit_code": exit_code}, data


def resize_terminal(call: Call) -> JsonObject:
    call.computer.terminals.resize(
        call.text("terminal"),
        columns=call.number("columns"),
        rows=call.number("rows"),
        epoch=call.epoch,
    )
    return {}


def close_terminal(call: Call) -> JsonObject:
    call.computer.terminals.close(call.text("terminal"), epoch=call.epoch)
    return {}


def run_python(call: Call) -> JsonObject:
    def work() -> Result:
        return call.computer.python.run(
            call.text("code"), epoch=call.epoch, timeout_ms=call.number("timeout_ms")
        )

    return done(*call.computer.ledger.once(call.action_id, work))


def read_clipboard(call: Call) -> JsonObject:
    return {"text": clipboard.read()}


def write_clipboard(call: Call) -> JsonObject:
    with call.computer.gate.entered(call.epoch):
        clipboard.write(call.text("text"))
    return {}


def list_windows(call: Call) -> JsonObject:
    return {"windows": [asdict(window) for window in call.computer.windows.all()]}


def activate_window(call: Call) -> JsonObject:
    with call.computer.gate.entered(call.epoch):
        call.computer.windows.activate(call.text("window"))
    return {}


def close_window(call: Call) -> JsonObject:
    with call.computer.gate.entered(call.epoch):
        call.computer.windows.close(call.text("window"))
    return {}


def list_ports(call: Call) -> JsonObject:
    return {"ports": ports.listening()}


def accessibility(call: Call) -> JsonObject:
    try:
        found = call.computer.programs.elements(limit=call.number("limit"))
    except AccessibilityError as error:
        raise ActionFailed(str(error)) from error
    return {"elements": [asdict(element) for element in found]}


TOOLS: Mapping[str, Route] = {
    "POST /v1/files/part": read_part,
    "POST /v1/files/upload": write_part,
    "POST /v1/files/list": list_files,
    "POST /v1/files/changed": changed_files,
    "POST /v1/terminals/open": open_terminal,
    "POST /v1/terminals/write": write_terminal,
    "POST /v1/terminals/read": read_terminal,
    "POST /v1/terminals/resize": resize_terminal,
    "POST /v1/terminals/close": close_terminal,
    "POST /v1/python": run_python,
    "POST /v1/clipboard/read": read_clipboard,
    "POST /v1/clipboard/write": write_clipboard,
    "POST /v1/windows": list_windows,
    "POST /v1/windows/activate": activate_window,
    "POST /v1/windows/close": close_window,
    "POST /v1/ports": list_ports,
    "POST /v1/accessibility": accessibility,
}
