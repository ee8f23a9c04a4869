"""The recorder stands alone: from a running server into an empty environment, no Django and no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from config import wheels

ROOT = Path(__file__).resolve().parents[2]
LOOK = """
import json, sys, importlib.metadata as m
import recorder.cli, recorder.commands.record, recorder.review, recorder.upload
print(json.dumps({"installed": sorted(d.name.lower() for d in m.distributions()),
                  "loaded": sorted(n.partition(".")[0] for n in sys.modules)}))
"""
UNWANTED = {"django", "torch", "transformers", "celery", "numpy.distutils"}


def run(*argv: str, **more: object) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, **more)  # type: ignore[call-overload]
    if done.returncode and (
        "Could not find a version" in done.stderr or "Connection" in done.stderr
    ):
        pytest.skip("needs a package registry for what the recorder depends on")
    assert done.returncode == 0, done.stderr[-2000:]
    return str(done.stdout)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    wheels.build(folder)
    return folder


@pytest.fixture
def offered(built: Path, settings: Any) -> Path:
    settings.RECORDER_WHEELS = built
    return built


def test_a_wheel_holds_every_file_of_its_package(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package, name in (("recorder", "tandem_recorder"), ("trajectory", "tandem_trajectory")):
        (wheel,) = built.glob(f"{name}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            inside = set(archive.namelist())
        source = ROOT / "packages" / package
        files = (p for p in (source / package).rglob("*") if p.is_file())
        wanted = {p.relative_to(source).as_posix() for p in files if "__pycache__" not in p.parts}
        assert wanted <= inside
    assert {p.suffix for p in built.iterdir()} == {".whl", ""}
    kept = (built / "stamp").read_text()
    monkeypatch.setattr(wheels, "sources", lambda: kept)
    monkeypatch.setattr(wheels.subprocess, "run", lambda *_, **__: pytest.fail("built again"))
    wheels.build(built)


@pytest.mark.timeout(300)
def test_it_installs_from_a_running_server_without_django_and_torch(
    offered: Path, live_server: Any, tmp_path: Path
) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    here: dict[str, Any] = {"env": environment, "cwd": str(tmp_path)}
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"), **here)
    bin_ = tmp_path / "venv" / "bin"
    # What looks for secrets brings spaCy: minutes, and nothing of it is ours.
    asked = Client().get("/recorder/requirements.txt").content.decode()
    lines = asked.replace("http://testserver", live_server.url).replace("[redact]", "")
    (tmp_path / "requirements.txt").write_text(lines)
    pip = [str(bin_ / "python"), "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "install", "-q", "-r", "requirements.txt", **here)
    run(*pip, "check", **here)
    command = str(bin_ / "tandem-recorder")
    assert "record" in run(command, "--help", **here)
    home = {**environment, "HOME": str(tmp_path), "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": ""}
    assert "No recordings" in run(command, "list", env=home, cwd=str(tmp_path))
    seen = json.loads(run(str(bin_ / "python"), "-c", LOOK, **here))
    assert not UNWANTED & {*seen["installed"], *seen["loaded"]}
    assert {"tandem-recorder", "tandem-trajectory"} <= set(seen["installed"])


def test_the_page_names_the_line_and_the_server_nothing_but_its_wheels(
    offered: Path, stranger: Any, settings: Any, tmp_path: Path
) -> None:
    browser = Client()
    assert browser.get("/recorder/").status_code == 302
    browser.force_login(stranger)
    page = browser.get("/recorder/").content.decode()
    assert "pip install -r http://testserver/recorder/requirements.txt" in page
    lines = Client().get("/recorder/requirements.txt").content.decode().splitlines()
    assert len(lines) == 2 and all(" @ http://testserver/" in x and "#sha256=" in x for x in lines)
    name = next(offered.glob("tandem_recorder*.whl")).name
    answer = Client().get(f"/recorder/wheels/{name}")
    assert b"".join(answer.streaming_content) == (offered / name).read_bytes()
    for other in ("stamp", "../../../etc/passwd", "..%2Fstamp", "%2e%2e/stamp", "", f"./{name}"):
        assert Client().get(f"/recorder/wheels/{other}").status_code == 404, other
    assert Client().post(f"/recorder/wheels/{name}").status_code == 405
    settings.RECORDER_WHEELS = tmp_path / "nowhere"
    assert "not built" in browser.get("/recorder/").content.decode()
    assert Client().get("/recorder/requirements.txt").status_code == 404
