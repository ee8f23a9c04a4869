"""Production settings that are unsafe are refused, and every variable is documented."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from config import env

ROOT = Path(__file__).resolve().parents[2]
SAFE = {
    "TANDEM_ENV": "production",
    "SECRET_KEY": "k3y-" * 4 + "0123456789abcdefghijklmnopqrstuvwxyzABCDEF",
    "ALLOWED_HOSTS": "tandem.example.org",
    "DATABASE_URL": "postgres://u:p@db:5432/tandem",
    "BROKER_URL": "redis://:p@valkey:6379/0",
    "CHANNEL_LAYER_URL": "redis://:p@valkey:6379/1",
    "STORAGE_URL": "s3://k:s@minio:9000/artifacts",
    "POLICY_URL": "http://policy:8100",
    "TANDEM_POLICY_TOKEN": "t" * 32,
    "SANDBOX_PROVIDER": "local",
    "SANDBOX_LOCAL_ACCEPTED": "1",
}


def check(**changes: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "TANDEM_STATE": os.environ["TANDEM_STATE"], **SAFE}
    environment |= changes
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy"],
        cwd=ROOT, capture_output=True, text=True, env=environment,
    )  # fmt: skip


def test_safe_settings_pass():
    done = check()
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


UNSAFE = {
    "TANDEM_ENV": "local",  # E001
    "DEBUG": "1",  # E002
    "SECRET_KEY": "short",  # E004
    "ALLOWED_HOSTS": "*,tandem.example.org",  # E005
    "PREVIEW_HOST": "preview.tandem.example.org",  # E007
    "SECURE_COOKIES": "0",  # E006
    "DATABASE_URL": "",  # E010
    "BROKER_URL": "memory://",  # E011
    "STORAGE_URL": "file:///var/blobs",  # E012
    "SANDBOX_LOCAL_ACCEPTED": "0",  # E020
    "TANDEM_POLICY_TOKEN": "",  # E021
}


def test_everything_unsafe_is_named_at_once():
    done = check(**UNSAFE)
    assert done.returncode == 1
    for number in (
        "E001",
        "E002",
        "E004",
        "E005",
        "E006",
        "E007",
        "E010",
        "E011",
        "E012",
        "E020",
        "E021",
    ):
        assert f"tandem.{number}" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"SECRET_KEY": ""}, "SECRET_KEY"), ({"SANDBOX_PROVIDER": "fake"}, "E022")],
)
def test_what_is_unsafe_alone_is_refused(changes, named):
    done = check(**changes)
    assert done.returncode == 1
    assert named in done.stderr


def test_what_cannot_be_meant_is_named(monkeypatch):
    monkeypatch.setenv("SANDBOX_MAX", "some")
    with pytest.raises(env.WrongVariable, match="SANDBOX_MAX='some': say a whole number"):
        env.integer("SANDBOX_MAX", 4)
    monkeypatch.setenv("DEBUG", "perhaps")
    with pytest.raises(env.WrongVariable, match="DEBUG='perhaps': say 1 or 0"):
        env.flag("DEBUG", default=False)
    monkeypatch.setenv("TANDEM_ENV", "prod")
    with pytest.raises(env.WrongVariable, match="say one of local, production"):
        env.choice("TANDEM_ENV", "local", ("local", "production"))


def test_a_secret_may_come_from_a_file(monkeypatch, tmp_path):
    (tmp_path / "key").write_text("from the file\n")
    monkeypatch.setenv("SECRET_KEY_FILE", str(tmp_path / "key"))
    assert env.text("SECRET_KEY") == "from the file"
    assert not env.is_embedded("SECRET_KEY")
    monkeypatch.setenv("SECRET_KEY_FILE", str(tmp_path / "none"))
    with pytest.raises(env.WrongVariable, match="No such file"):
        env.text("SECRET_KEY")


@pytest.mark.django_db
def test_a_script_beside_annotators_is_refused():
    from agent.models import Deployment
    from config.deploy_checks import production_partner

    assert production_partner(None, databases=["default"]) == []
    Deployment.objects.create(name="s", kind=Deployment.Kind.SCRIPTED, is_partner=True)
    assert [found.id for found in production_partner(None, databases=["default"])] == [
        "tandem.E030"
    ]


def test_every_variable_is_documented_and_every_documented_one_is_read():
    code = "".join(path.read_text() for path in (ROOT / "config").rglob("*.py"))
    read = set(re.findall(r'env\.(?:text|flag|integer|words|choice|service)\(\s*"([A-Z_]+)"', code))
    read |= set(re.findall(r'(?:child|environment)\.(?:get|setdefault)\("([A-Z_]+)"', code))
    read |= {"TANDEM_STATE"}
    documented = set(re.findall(r"^([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert read - {"PATH"} == documented
