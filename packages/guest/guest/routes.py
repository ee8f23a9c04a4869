"""What can be asked of a guest by path: SCREEN of every computer, DESKTOP of one with programs."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Mapping

from guest.call import Call, JsonObject, Route, done
from guest.errors import ActionFailed, GuestError
from guest.tools import TOOLS
from trajectory import FormatError, action_from_dict


def health(call: Call) -> JsonObject:
    computer, server = call.computer, call.server
    return {
        "ready": True,
        "boot_id": computer.boot_id,
        "epoch": computer.gate.epoch,
        "width": computer.screen.width,
        "height": computer.screen.height,
        "limits": server.limits,
        "uptime_s": round(time.monotonic() - server.started, 3),
    }


def raise_epoch(call: Call) -> JsonObject:
    return {"epoch": call.computer.fence(call.epoch)}


def observe(call: Call) -> tuple[JsonObject, bytes]:
    computer = call.computer
    wanted = bool(call.body.get("elements", False))
    captured_at = time.time()
    # Encoding lets go of the interpreter, so the page is asked meanwhile.
    encoding = call.server.encoder.submit(computer.screen.png, computer.screen.grab())
    url, elements = computer.browser.look() if wanted else ("", None)
    png = encoding.result()
    header = {
        "width": computer.screen.width,
        "height": computer.screen.height,
        "elements": elements,
        "url": url,
        "captured_at": captured_at,
        "seq": call.server.next_observation(),
    }
    return header, png


def perform(call: Call) -> JsonObject:
    try:
        action = action_from_dict(call.body.get("action"))
    except FormatError as error:
        raise ActionFailed(str(error)) from error
    return done(*call.computer.perform(action, epoch=call.epoch, action_id=call.action_id))


def settle(call: Call) -> JsonObject:
    quiet_ms, max_ms = call.number("quiet_ms"), call.number("max_ms")
    return {"settled": call.computer.screen.settle(quiet_ms=quiet_ms, max_ms=max_ms)}


def shell(call: Call) -> JsonObject:
    return done(
        *call.computer.shell(
            call.text("command"),
            epoch=call.epoch,
            action_id=call.action_id,
            timeout_ms=call.number("timeout_ms"),
        )
    )


def launch(call: Call) -> JsonObject:
    return done(
        *call.computer.launch(call.texts("argv"), epoch=call.epoch, action_id=call.action_id)
    )


def read_file(call: Call) -> tuple[JsonObject, bytes]:
    return {}, call.computer.files.read(call.text("path"))


def write_file(call: Call) -> JsonObject:
    try:
        data = base64.b64decode(call.text("data"), validate=True)
    except binascii.Error as error:
        raise GuestError(f"data must be base64: {error}") from error
    with call.computer.gate.entered(call.epoch):
        call.computer.files.write(call.text("path"), data)
    return {}


def evaluate(call: Call) -> JsonObject:
    return {"value": call.computer.browser.evaluate(call.text("expression"))}


SCREEN: Mapping[str, Route] = {
    "GET /v1/health": health,
    "POST /v1/epoch": raise_epoch,
    "POST /v1/observe": observe,
    "POST /v1/perform": perform,
    "POST /v1/settle": settle,
    "POST /v1/shell": shell,
    "POST /v1/launch": launch,
    "POST /v1/files/read": read_file,
    "POST /v1/files/write": write_file,
    "POST /v1/page/evaluate": evaluate,
}
DESKTOP: Mapping[str, Route] = {**SCREEN, **TOOLS}
