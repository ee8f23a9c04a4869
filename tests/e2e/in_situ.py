"""What a recorded task needs: a contributor's desktop with a page to work on, a hand and a voice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from PIL import Image
from Xlib import X, display

from tests.recorder.conftest import Hand, program, to_front, until

PAGE = """<!doctype html><title>Expenses</title><style>
body {margin: 0; font: 17px system-ui, sans-serif; background: #eef1f6; color: #1d2433}
main {width: 560px; margin: 36px auto; padding: 28px 36px; background: #fff; border-radius: 12px}
label {display: block; margin: 18px 0 6px} button {margin-top: 24px; background: #2456d6; color: #fff}
input:not([type=checkbox]), button {box-sizing: border-box; width: 100%; height: 44px; padding: 0 12px;
font: inherit; border: 1px solid #b8c0d0; border-radius: 8px} input[type=checkbox] {width: 22px; height: 22px}
</style><main><h1>Expense report</h1>
<label for=purpose>Purpose</label><input id=purpose autocomplete=off>
<label for=sign>Password</label><input id=sign type=password autocomplete=off>
<label><input id=receipts type=checkbox> I have the receipts</label>
<button id=save>Save</button><p id=said>&nbsp;</p></main><script>
const $ = (id) => document.getElementById(id);
let n = 0, saved = false;
const tell = () => {
  const top = screenY + outerHeight - innerHeight, left = screenX + (outerWidth - innerWidth) / 2, places = {};
  for (const id of ["purpose", "sign", "receipts", "save"]) {
    const box = $(id).getBoundingClientRect();
    places[id] = [Math.round(left + box.x + box.width / 2), Math.round(top + box.y + box.height / 2)];
  }
  const values = {purpose: $("purpose").value.length, sign: $("sign").value.length, receipts: $("receipts").checked};
  fetch("/told", {method: "POST", body: JSON.stringify({n: ++n, places, saved, ...values})});
};
for (const what of ["load", "resize", "input"]) addEventListener(what, tell);
$("save").onclick = () => { $("said").textContent = "Saved."; saved = true; tell(); };
</script>"""


@dataclass
class Form:
    """The page in front, and what it has told: where its fields are, how much stands in them."""

    hand: Hand
    told: dict[str, Any] = field(default_factory=dict)

    def click(self, name: str) -> None:
        x, y = self.told["places"][name]
        self.hand("mousemove", str(x), str(y), "click", "1")

    def type(self, name: str, text: str) -> None:
        """Type and wait until all of it stands in the field `name`."""
        self.hand("type", "--delay", "8", text)
        until(lambda: self.told.get(name) == len(text), f"the text in {name}", deadline_s=40)


@contextmanager
def form(screen: str, hand: Hand, folder: Path) -> Iterator[Form]:
    """A real Chromium on the contributor's screen that shows a form."""
    shown = Form(hand)

    class Answer(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            self._say(PAGE.encode())

        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if told["n"] > shown.told.get("n", 0):  # two may overtake each other
                shown.told = told
            self._say(b"")

        def _say(self, data: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    with program(
        *("chromium", "--no-sandbox", "--no-first-run", "--force-renderer-accessibility"),
        *(f"--user-data-dir={folder}/profile", "--window-position=0,0", "--window-size=1280,720"),
        *(
            "--disable-gpu",
            "--test-type",
            "--password-store=basic",
            "--disable-background-networking",
        ),
        f"http://localhost:{server.server_port}/",
        env={**os.environ, "DISPLAY": screen, "HOME": str(folder)},
    ):
        to_front(hand, "Expenses")
        until(lambda: "places" in shown.told, "the page", deadline_s=40)
        yield shown
    server.shutdown()
    server.server_close()


class Recorder:
    """`tandem-recorder` as its person runs it, with settings and recordings of its own."""

    def __init__(self, home: Path, screen: str) -> None:
        self.recordings = home / "data" / "tandem-recorder" / "recordings"
        self.environment = {
            **os.environ, "DISPLAY": screen, "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_DATA_HOME": str(home / "data"), "BROWSER": "true",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        }  # fmt: skip
        self.environment.pop("WAYLAND_DISPLAY", None)

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A command whose lines can be read and answered; it must end well."""
        with subprocess.Popen(
            [sys.executable, "-u", "-m", "recorder.cli", *words],
            env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        ) as process:  # fmt: skip
            try:
                yield process
                assert process.stdout is not None and process.stdin is not None
                process.stdin.close()
                said = process.stdout.read()
                assert process.wait(120) == 0, said
            finally:
                process.kill()

    def run(self, *words: str) -> None:
        with self.running(*words):
            pass


def line_with(process: subprocess.Popen[str], mark: str) -> str:
    """Return the next line that holds `mark`; fails with all that was said where none comes."""
    said = []
    assert process.stdout is not None
    for line in process.stdout:
        if mark in line:
            return line
        said.append(line)
    raise AssertionError(f"no {mark!r} in {''.join(said)}")


def shot(screen: str, path: Path) -> None:
    """Keep a picture of a display as its person sees it, the recorder's sign included."""
    connection = display.Display(screen)
    root = connection.screen().root
    size = connection.screen().width_in_pixels, connection.screen().height_in_pixels
    data = root.get_image(0, 0, *size, X.ZPixmap, 0xFFFFFFFF).data
    Image.frombytes("RGB", size, bytes(data), "raw", "BGRX").save(path)
    connection.close()
