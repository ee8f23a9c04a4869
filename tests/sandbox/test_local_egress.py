"""A sandbox's way out: what its list allows, what no list allows, and that there is no other way.

The proxy runs in a network namespace of its own, joined by one cable to another with a web server. The
addresses there look public; no packet leaves the two.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.provider import ProvisionFailed, SandboxSpec
from sandbox.providers.local import LocalProvider, egress, outlet, proxy
from tests.sandbox.desktops import needs_local, new_id
from tests.sandbox.phones import wait_for

NEAR, FAR = f"tandem-near-{os.getpid()}", f"tandem-far-{os.getpid()}"
SERVER = "192.31.196.10"  # public by the registries, and nobody's: AS112's range
HOSTS = f"""127.0.0.1 localhost home.test
{SERVER} site.test www.site.test other.test
192.31.196.1 self.test
10.1.2.3 private.test
169.254.169.254 metadata.test
"""
Ask = Callable[..., str]


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
        *("0.0.0.0", "224.0.0.1", "255.255.255.255", "168.63.129.16", "192.0.2.1", "198.18.0.1"),
        *("::1", "::", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:8.8.8.8%x", "64:ff9b::7f00:1", "2002:7f00:1::"),
    ],
)
def test_addresses_that_no_list_opens(address: str) -> None:
    if address.startswith("::ffff:8"):
        pytest.skip("a public address in another spelling")
    with pytest.raises(egress.Refused, match="no public address"):
        egress.check_address(address)


def test_public_addresses() -> None:
    for address in ("8.8.8.8", SERVER, "2606:4700::1111", "64:ff9b::808:808"):
        egress.check_address(address)


def test_names_on_the_list() -> None:
    rules = tuple(egress.parse(text) for text in ("site.test", "*.example.org", "dev.test:8080"))
    assert egress.check_name(rules, "SITE.test.", 443) == "site.test"
    assert egress.check_name(rules, "a.b.example.org", 80)
    assert egress.check_name(rules, "dev.test", 8080)
    for host, port in (
        ("example.org", 443), ("site.test", 22), ("dev.test", 443), ("xsite.test", 443),
        ("site.test.evil", 443), ("evilexample.org", 443), ("", 443),
    ):  # fmt: skip
        with pytest.raises(egress.Refused, match="not on this sandbox's list"):
            egress.check_name(rules, host, port)


@pytest.mark.parametrize("text", ["", "*", "*.", "http://x", "a b", "x:", "x:99999", "x:y", "a/b"])
def test_a_rule_that_names_no_host(text: str) -> None:
    with pytest.raises(ValueError, match="names no host"):
        egress.parse(text)


@given(st.binary(max_size=300))
def test_any_head_is_read_or_refused(data: bytes) -> None:
    try:
        proxy._read(data + b"\r\n\r\n")
    except ValueError:
        pass


def test_the_server_is_told_the_host_that_was_judged() -> None:
    asked = proxy._read(
        b"GET http://site.test/a?b=1 HTTP/1.1\r\nHost: other.test\r\nConnection: keep-alive\r\n"
        b"Proxy-Authorization: x\r\nAccept: */*\r\n\r\n"
    )
    assert (asked.host, asked.port) == ("site.test", 80)
    assert asked.head == (
        b"GET /a?b=1 HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\nAccept: */*\r\n\r\n"
    )


def test_no_second_host_is_smuggled_in() -> None:
    for end in ("\n", "\r", "\0"):
        with pytest.raises(ValueError, match="CR LF"):
            head = f"GET http://site.test/ HTTP/1.1\r\nX: 1{end}Host: other.test\r\n\r\n"
            proxy._read(head.encode())


async def test_a_download_goes_on_while_nothing_goes_up(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = socket.socketpair()
    client, sandbox = socket.socketpair()
    there = await asyncio.open_connection(sock=ours)
    here = await asyncio.open_connection(sock=sandbox)
    loop = asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    splicing = asyncio.ensure_future(proxy._splice(here, there))
    for end in (theirs, client):
        end.setblocking(False)
    for _ in range(5):
        await loop.sock_sendall(theirs, b"x")
        assert await loop.sock_recv(client, 1) == b"x"
        assert not splicing.done()
        now += proxy._IDLE_S * 0.8
    now += proxy._IDLE_S
    await splicing  # nothing passes any more
    assert await loop.sock_recv(theirs, 1) == b""
    here[1].close()
    for end in (theirs, client):
        end.close()


# -- two namespaces ------------------------------------------------------------------------


def _ip(*words: str) -> int:
    return subprocess.run(["ip", *words], capture_output=True).returncode


@pytest.fixture(scope="module")
def namespaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Join two namespaces; a web server is in the far one. Yield a folder."""
    if os.geteuid() != 0 or shutil.which("ip") is None or _ip("netns", "add", NEAR) != 0:
        pytest.skip("needs root and ip (iproute2) that may make network namespaces")
    root = tmp_path_factory.mktemp("egress")
    etc = Path("/etc/netns", NEAR)
    etc.mkdir(parents=True)
    (etc / "hosts").write_text(HOSTS)
    (root / "site").mkdir()
    (root / "site" / "index.html").write_text("from the far side")
    server = None
    try:
        _ip("netns", "add", FAR)
        _ip("link", "add", "near", "netns", NEAR, "type", "veth", "peer", "far", "netns", FAR)
        for name, end, address in ((NEAR, "near", "192.31.196.1"), (FAR, "far", SERVER)):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            _ip("-n", name, "link", "set", end, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        serve = [sys.executable, "-u", "-m", "http.server", "80", "--directory", root / "site"]
        with (root / "server.log").open("wb") as out:
            server = subprocess.Popen(
                ["ip", "netns", "exec", FAR, *serve], stdout=out, stderr=subprocess.STDOUT
            )
        yield root
    finally:
        if server is not None:
            server.kill()
            server.wait()
        for name in (NEAR, FAR):
            _ip("netns", "del", name)
        shutil.rmtree(etc)


@pytest.fixture(scope="module")
def ask(namespaces: Path) -> Iterator[Ask]:
    """Send a request to a proxy in the near namespace; return the answer."""
    path = namespaces / "egress.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        command = [
            "ip", "netns", "exec", NEAR, sys.executable, "-m", "sandbox.providers.local.proxy",
            "--listener", str(listener.fileno()), "--log", str(namespaces / "egress.log"),
            "--boot-id", "x",
        ]  # fmt: skip
        for rule in ("*.test", "site.test", "home.test", "169.254.169.254", "127.0.0.1"):
            command += ["--allow", rule]
        process = subprocess.Popen(command, pass_fds=[listener.fileno()])

    def send(request: str) -> str:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(str(path))
            client.sendall(request.encode())
            parts = []
            while data := client.recv(65536):
                parts.append(data)
        return b"".join(parts).decode()

    wait_for(namespaces / "server.log")
    yield send
    process.send_signal(signal.SIGKILL)
    process.wait()


def _get(host: str) -> str:
    return f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"


def test_what_is_on_the_list_is_reached(ask: Ask) -> None:
    assert ask(_get("site.test")).endswith("from the far side")
    tunnel = "CONNECT www.site.test:80 HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n"
    answer = ask(tunnel)
    assert answer.startswith("HTTP/1.1 200 Connection established")
    assert answer.endswith("from the far side")


def test_what_is_not_is_refused_and_logged(ask: Ask, namespaces: Path) -> None:
    for host, why in (
        ("elsewhere.example", "not on this sandbox's list"),
        ("private.test", "no public address"),
        ("metadata.test", "no public address"),
        ("home.test", "no public address"),
        ("169.254.169.254", "no public address"),
        ("127.0.0.1", "no public address"),
        ("self.test", "this host itself"),
    ):
        answer = ask(_get(host))
        assert answer.startswith("HTTP/1.1 403") and why in answer, host
    assert "403" in ask("CONNECT site.test:22 HTTP/1.1\r\n\r\n")
    logged = {(entry["host"], entry["port"]) for entry in outlet.refused(namespaces)}
    assert {("elsewhere.example", 80), ("private.test", 80), ("site.test", 22)} <= logged


def test_what_no_client_of_a_proxy_sends(ask: Ask) -> None:
    assert "400" in ask("GET / HTTP/1.1\r\n\r\n")
    assert "400" in ask("CONNECT nowhere HTTP/1.1\r\n\r\n")
    assert "502" in ask("CONNECT nothing.test:443 HTTP/1.1\r\n\r\n")  # a name without an address


# -- a whole sandbox -----------------------------------------------------------------------


@needs_local
def test_a_sandbox_has_no_way_past_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    provider = LocalProvider(tmp_path / "sb")
    with pytest.raises(ProvisionFailed, match="names no host"):
        provider.start(SandboxSpec("bad", network="allowlist", allow=("http://x",)))
    handle = provider.start(SandboxSpec("out", network="allowlist", allow=("localhost",)))
    try:
        desktop = provider.connect(handle)
        desktop.fence(1)

        def run(command: str) -> str:
            return desktop.shell(command, epoch=1, action_id=new_id()).output

        ask = "import urllib.request as u\ntry: u.urlopen('{}')\nexcept Exception as e: print(e)"
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            assert "403" in run(f'python3 -c "{ask.format("http://elsewhere.example/")}"')
            assert "403" in run(f'python3 -c "{ask.format("http://localhost/")}"')
            assert "refused" in run(f"bash -c 'echo x > /dev/tcp/127.0.0.1/{port}' 2>&1")
        assert "nreachable" in run(f"bash -c 'echo x > /dev/tcp/{SERVER}/80' 2>&1")
        assert run("tail -n +3 /proc/net/dev | cut -d: -f1").split() == ["lo"]
        assert "denied" in run("rm -f /run/tandem/egress.sock 2>&1") or os.geteuid() != 0
        why = {str(entry["host"]): entry["why"] for entry in provider.refused(handle)}
        assert "not on this sandbox's list" in str(why["elsewhere.example"])
        assert "no public address" in str(why["localhost"])
        proxy_pid = int((tmp_path / "sb" / "out" / "egress.pid").read_text())
        if os.geteuid() == 0:
            assert os.stat(f"/proc/{proxy_pid}").st_uid == 65534
    finally:
        provider.stop(handle)
    assert not Path(f"/proc/{proxy_pid}/exe").exists()
    assert "out was refused elsewhere.example:80" in caplog.text
