"""Before the confirmation nothing leaves: all of it works without a network, and none is tried."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recorder.made_recording import canary_recording

ROOT = Path(__file__).resolve().parents[2]

WORK = """
import json, sys, urllib.request
tried = []
sys.addaudithook(lambda event, args: tried.append([event, repr(args[1:])]) if event in
    ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto") else None)
from pathlib import Path
from recorder.review import Review, prepare
from recorder.spool import Folder
folder = Folder(Path(sys.argv[1]))
ready = prepare(folder, folder.path.parent / "never.toml")
with Review(ready) as review:
    review.looking.wait(60)
    before, state = list(tried), review.looking.state
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    shown = json.loads(opener.open(review.address + "contents", timeout=60).read())
    asked = urllib.request.Request(review.address + "confirm", b'{"looked": true}',
        {"Content-Type": "application/json", "Origin": "http://" + review.host})
    opener.open(asked, timeout=60).read()
    host = review.host
print(json.dumps({"before": before, "tried": tried, "host": host, "state": state, "steps": len(shown["steps"])}))
"""


def test_reduce_redact_and_review_try_no_connection(tmp_path: Path) -> None:
    for program in ("unshare", "ip", "strace"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing")
    alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*alone, "true"], capture_output=True, timeout=60).returncode:
        pytest.skip("a network namespace of one's own is not allowed here")
    folder, calls = canary_recording(tmp_path), tmp_path / "calls"
    traced = [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-e",
        "trace=connect,sendto,sendmsg",
        "-o",
        str(calls),
    ]
    home = tmp_path / "home"
    home.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
    done = subprocess.run(
        [*alone, *traced, sys.executable, "-c", WORK, str(folder.path)], cwd=ROOT,
        env=environment | {"HOME": str(home)}, capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["before"] == [], "something was tried before the page was asked for"
    assert said["steps"] == 5
    assert said["state"] == (
        "read" if importlib.util.find_spec("rapidocr_onnxruntime") else "unread"
    )
    assert (folder.upload / "manifest.json").exists()
    # The page's own browser is all that was ever connected, on loopback.
    host, port = said["host"].split(":")
    connects = [line for line in calls.read_text().splitlines() if "connect(" in line]
    far = [c for c in connects if "AF_INET" in c and not re.search(rf"htons\({port}\)", c)]
    assert connects and not far
    assert all(host in c for c in connects if f"htons({port})" in c)
    # ONNX Runtime's telemetry begins with a number for this computer, and sends a minute later.
    assert not list(home.rglob("deviceid"))
