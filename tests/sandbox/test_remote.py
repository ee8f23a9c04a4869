"""Machines registered by hand: what is refused, what counts as fresh, and what a dead one says."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from sandbox.provider import DesktopLost, ProvisionFailed, SandboxSpec
from sandbox.providers.remote import machines
from sandbox.providers.remote.provider import RemoteProvider
from tests.sandbox import far
from tests.sandbox.desktops import needs_local

GOOD = """
[lab]
guest = "tcp://127.0.0.1:7001"
vnc = "tcp://127.0.0.1:5901"
vnc_password = "secret"
reset = "none"
"""


def _written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.touch(mode=mode)
    path.chmod(mode)
    path.write_text(text)
    return path


def test_the_end_of_an_ssh_tunnel_needs_no_door(tmp_path: Path) -> None:
    [machine] = machines.load(_written(tmp_path / machines.FILE, GOOD))
    assert (machine.name, machine.size, machine.reset) == ("lab", (1280, 720), ())
    assert machine.way.guest == "tcp://127.0.0.1:7001"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("127.0.0.1:7001", "10.0.0.5:7001"), "in the clear"),
        (("127.0.0.1:7001", "localhost.evil:7001"), "in the clear"),
        (("tcp://127.0.0.1:7001", "door://10.0.0.5:7443"), "'certificate' is missing"),
        (("tcp://127.0.0.1:7001", "http://10.0.0.5"), "no door://HOST:PORT"),
        (('reset = "none"', 'reset = "rm -rf x"'), '"none" or a list'),
        (('reset = "none"', ""), "'reset' is missing"),
        (("vnc_password", "password"), "unknown key 'password'"),
        (("[lab]", "[lab"), "machines.toml"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    path = _written(tmp_path / machines.FILE, GOOD.replace(*change))
    with pytest.raises(ProvisionFailed, match=says):
        machines.load(path)


def test_secrets_that_others_can_read_or_guess_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProvisionFailed, match="chmod 600"):
        machines.load(_written(tmp_path / machines.FILE, GOOD, mode=0o644))
    (tmp_path / "lab.pem").write_text("")
    door = GOOD.replace("tcp://127.0.0.1:7001", "door://10.0.0.5:7443")
    short = f'{door}certificate = "lab.pem"\nsecret = "short"\n'
    with pytest.raises(ProvisionFailed, match="at least 32 characters"):
        machines.load(_written(tmp_path / machines.FILE, short))


def test_without_machines_it_says_where_to_write_them(tmp_path: Path) -> None:
    with pytest.raises(ProvisionFailed, match=r"write .*machines\.toml"):
        RemoteProvider(tmp_path).start(SandboxSpec("a"))


@needs_local
def test_one_machine_from_hand_to_hand(tmp_path: Path) -> None:
    """One story, because every chapter needs a desktop that runs."""
    with far.machines(tmp_path):
        file = tmp_path / "remote" / machines.FILE
        small = file.read_text().partition("[small]")[2]
        failing = [
            line if "reset =" not in line else 'reset = ["false"]' for line in small.split("\n")
        ]
        file.write_text("[small]" + "\n".join(failing))
        provider = RemoteProvider(tmp_path / "remote")
        spec = SandboxSpec("one")
        with pytest.raises(ProvisionFailed, match="its reset ended with status 1"):
            provider.start(spec)
        assert provider.running() == []

        # Without a reset a machine is lent once for each start of its guest.
        never = [line if "reset =" not in line else 'reset = "none"' for line in small.split("\n")]
        file.write_text("[small]" + "\n".join(never))
        password = (tmp_path / "keys" / "small" / "rfb.passwd").read_bytes()
        boot_id = far.restart(tmp_path, "small", far.SIZES["small"], password)
        handle = provider.start(spec)
        assert handle.boot_id == boot_id
        with pytest.raises(ProvisionFailed, match="all lent out"):
            provider.start(SandboxSpec("two"))
        with pytest.raises(ProvisionFailed, match=r"no free machine shows 800x600: 0 of 1"):
            provider.start(SandboxSpec("two", width=800, height=600))
        with socket.socket(socket.AF_UNIX) as rfb:
            rfb.connect(handle.rfb_socket)
            assert rfb.recv(12) == b"RFB 003.008\n"
        assert Path(handle.guest_socket).parent.stat().st_mode & 0o077 == 0

        # The machine goes away: the cause names the address that does not answer.
        far.stop(tmp_path, "small")
        assert provider.alive(handle)
        with pytest.raises(DesktopLost, match=r"door://127\.0\.0\.1:\d+: .*nothing behind it"):
            provider.connect(handle)
        provider.stop(handle)
        assert not (tmp_path / "remote" / "sandboxes" / "one").exists()

        # It comes back, but as the very guest that was lent out before: it is not fresh.
        boot_id = far.restart(tmp_path, "small", far.SIZES["small"], password)
        (tmp_path / "remote" / "spent.json").write_text(json.dumps({"small": boot_id}))
        with pytest.raises(ProvisionFailed, match="lent out before and has no reset"):
            provider.start(spec)
