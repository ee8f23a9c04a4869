"""`manage.py sandbox` by hand, and over MCP as a client starts it."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import InterfaceError, OperationalError, connection
from PIL import Image

from sandbox import held as held_module
from sandbox.attach import attach
from sandbox.held import held
from sandbox.leasing import leases
from sandbox.management.commands.sandbox import LEASE_GONE, NO_COMPUTER
from sandbox.models import Lease, Sandbox
from sandbox.operations import listing
from sandbox.provider import SandboxSpec
from sandbox.providers import load
from sandbox.providers.fake import FakeProvider
from tests.sandbox.desktops import needs_local, new_id
from tests.sandbox.rows import acquire, make_sandbox
from trajectory import Move


@pytest.fixture
def ready(db: None) -> Iterator[Sandbox]:
    """A fake computer that waits for somebody."""
    provider = FakeProvider()
    handle = provider.start(SandboxSpec(new_id()))
    row = make_sandbox(handle.name, host=settings.SANDBOX_HOST)
    row.handle = Sandbox.handle_record(handle)
    row.save(update_fields=["handle"])
    yield row
    provider.stop(handle)


def _run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("sandbox", *arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def _refused(*arguments: str) -> CommandError:
    with pytest.raises(CommandError) as caught:
        _run(*arguments)
    return caught.value


def test_lease_use_and_release(ready: Sandbox, tmp_path: Path) -> None:
    number = _run("lease", "--minutes", "5").strip()
    assert Lease.objects.get().pk == int(number)
    assert _run("exec", number, "--", "echo", "hello", ">", "f;", "cat", "f") == "hello\n"
    assert json.loads(_run("exec", number, "--json", "--", "echo hi; exit 4")) == {
        "output": "hi\n",
        "exit_code": 4,
    }
    with pytest.raises(SystemExit) as left:
        _run("exec", number, "--", "exit 4")
    assert left.value.code == 4
    picture = tmp_path / "shot.png"
    assert "1280x720" in _run("shot", number, str(picture))
    assert Image.open(picture).size == (1280, 720)
    assert "released" in _run("release", number)
    assert "already" in _run("release", number)
    error = _refused("exec", number, "--", "true")
    assert error.returncode == LEASE_GONE and "released by hand" in str(error)


def test_a_lease_as_json_belongs_to_whom_it_was_asked_for(ready: Sandbox, annotator: Any) -> None:
    record = json.loads(_run("lease", "--json", "--user", "annotator", "--purpose", "human"))
    lease = Lease.objects.get(pk=record["lease"])
    assert (lease.owner, lease.purpose, record["sandbox"]) == (annotator, "human", ready.name)
    assert "nobody" in str(_refused("lease", "--user", "nobody"))


def test_no_computer_has_an_exit_code_of_its_own(db: None) -> None:
    error = _refused("lease")
    assert error.returncode == NO_COMPUTER and "pool is empty" in str(error)
    assert "absent" in str(_refused("lease", "--pool", "absent"))
    assert "there is no lease 7" in str(_refused("exec", "7", "--", "true"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("lease", "--minutes", "0"),
        ("lease", "--wait", "-1"),
        ("exec", "1", "--timeout", "0", "--", "true"),
        ("fly",),
        (),
        ("exec", "one", "--", "true"),
    ],
)
def test_wrong_arguments_are_named(db: None, arguments: tuple[str, ...]) -> None:
    assert str(_refused(*arguments))


def test_a_picture_goes_to_a_pipe_and_not_to_a_folder(
    ready: Sandbox, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    number = _run("lease").strip()
    _run("shot", number)
    assert Image.open(io.BytesIO(capfdbinary.readouterr().out)).size == (1280, 720)
    assert str(tmp_path) in str(_refused("shot", number, str(tmp_path)))


def test_the_list_says_state_lease_and_cause(ready: Sandbox, annotator: Any) -> None:
    make_sandbox("broken", state=Sandbox.State.FAILED, cause="Xvnc\x1b[2J died\nof something")
    make_sandbox("old", state=Sandbox.State.GONE)
    lease = acquire(annotator)
    text = _run("list")
    line = next(line for line in text.splitlines() if line.startswith(ready.name))
    assert "leased" in line and str(lease.pk) in line and "annotator" in line
    assert "Xvnc?[2J died of something" in text and "old" not in text
    names = {record["name"] for record in json.loads(_run("list", "--json", "--all"))}
    assert names == {ready.name, "broken", "old"}
    assert listing.table([]).startswith("no computers")
    assert _run("list", "--pool", "absent").startswith("no computers")


def test_a_terminal_carries_keys_in_and_output_out(ready: Sandbox) -> None:
    lease = acquire(None)
    keys, typing = os.pipe()
    printed, out = os.pipe()
    os.write(typing, b"printf 'a%sb' $((40+2)); printf '\\033]0;owned\\007'; exit 3\n")
    with held(lease) as hold:
        code = attach(hold.desktop, epoch=hold.epoch, stdin=keys, stdout=out)  # type: ignore[arg-type]
    os.close(out)
    with os.fdopen(printed, "rb") as file:
        said = file.read()
    assert code == 3 and b"a42b" in said and b"owned\x07" not in said
    os.close(typing)
    os.close(keys)


def test_the_end_of_input_ends_a_terminal(ready: Sandbox) -> None:
    lease = acquire(None)
    keys, typing = os.pipe()
    os.write(typing, b"echo over\n")
    os.close(typing)
    with held(lease) as hold, open(os.devnull, "wb") as nothing:
        code = attach(hold.desktop, epoch=hold.epoch, stdin=keys, stdout=nothing.fileno())  # type: ignore[arg-type]
    assert code == 0
    os.close(keys)


@pytest.mark.django_db(transaction=True)
def test_who_holds_a_lease_renews_it_and_hears_of_its_end(
    ready: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_module, "RENEW_EVERY_S", 0.01)
    monkeypatch.setattr(leases, "WRITE_EVERY", leases.WRITE_EVERY * 0)
    lease = acquire(None, purpose="agent")
    with held(lease) as hold:
        before = Lease.objects.get(pk=lease.pk).expires_at
        _until(lambda: Lease.objects.get(pk=lease.pk).expires_at > before)
        hold.perform(Move(1, 2))
        leases.release(lease, reason="an admin took it")
        _until(lambda: bool(hold.over))
        with pytest.raises(leases.LeaseOver, match="an admin took it"):
            hold.perform(Move(1, 2))


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_for_a_moment_ends_no_renewing(
    ready: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, renew = acquire(None, purpose="agent"), leases.renew
    troubles: list[Exception] = [OperationalError("cut"), InterfaceError("closed already")]
    renewed = threading.Event()

    def shaky(*args: Any, **said: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            if troubles:
                raise troubles.pop()
            renewed.set()
        renew(*args, **said)

    monkeypatch.setattr(held_module, "RENEW_EVERY_S", 0.01)
    monkeypatch.setattr(leases, "renew", shaky)
    with held(lease):
        assert renewed.wait(60)


def _until(done: Any) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline


@needs_local
async def test_a_client_starts_the_server_and_the_computer_is_given_back(
    child_environment: dict[str, str],
) -> None:
    mcp = pytest.importorskip("mcp", reason="needs the mcp package")
    from asgiref.sync import sync_to_async
    from mcp.client.stdio import StdioServerParameters

    with tempfile.TemporaryDirectory(prefix="mcp-") as folder:
        provider = load("local", state=Path(folder))
        handle = provider.start(SandboxSpec("real"))
        try:

            def rows() -> None:
                row = make_sandbox("real", host=settings.SANDBOX_HOST)
                record = Sandbox.handle_record(handle)
                Sandbox.objects.filter(pk=row.pk).update(provider="local", handle=record)

            await sync_to_async(rows)()
            program = StdioServerParameters(
                command=sys.executable,
                args=[str(settings.BASE_DIR / "manage.py"), "sandbox", "mcp"],
                env=child_environment,
            )
            async with mcp.Client(program, read_timeout_seconds=60) as client:
                told = await client.call_tool("shell", {"command": "echo $((40+2))"})
                assert "42" in told.content[0].text
                shown = await client.call_tool("screenshot", {})
                assert shown.content[0].mime_type == "image/png"
                lease = await Lease.objects.aget()
                assert lease.state == Lease.State.ACTIVE

            def given_back() -> bool:
                return Lease.objects.get().state == Lease.State.RELEASED

            await sync_to_async(_until)(given_back)
            assert "MCP client left" in (await Lease.objects.aget()).release_reason
        finally:
            provider.stop(handle)
            await sync_to_async(lambda: connection.close())()  # its thread has one of its own
