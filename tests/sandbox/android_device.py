"""A simulated Android device: the real adb talks to it over TCP. No Android runs anywhere here.

It speaks the ADB wire protocol (CNXN, OPEN, WRTE, OKAY, CLSE and sync; AOSP: packages/modules/adb/
protocol.txt, SYNC.TXT). Commands run by a real sh among folders of its own (/sdcard, /data) in which the
programs of a phone (input, am, uiautomator ...) are stubs that ask this process. Not covered: shell_v2, AUTH,
install. Run inside bubblewrap by `start`.
"""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.sandbox.android_screen import COMPONENTS, Phone, run_am, run_input

_MAX = 256 << 10
_CNXN, _OPEN, _OKAY, _CLSE, _WRTE = (
    int.from_bytes(n, "little") for n in (b"CNXN", b"OPEN", b"OKAY", b"CLSE", b"WRTE")
)
_BANNER = b"device::ro.product.name=simulated;ro.product.model=Simulated;features=cmd\0"
_PROGRAMS = [
    "input",
    "am",
    "pm",
    "wm",
    "settings",
    "svc",
    "screencap",
    "uiautomator",
    "getprop",
    "cmd",
    "dumpsys",
    "ime",
    "simulate",
]
_STUB = """#!/bin/bash
exec 3<>"/dev/tcp/127.0.0.1/$DEVICE_TOOLS"
printf '%s\\0' "$(($# + 1))" "${0##*/}" "$@" >&3
IFS= read -r code <&3; cat <&3; exit "$code"
"""
_KEYBOARD = "com.android.adbkeyboard/.AdbIME"


class Device:
    """One phone: the state behind its programs."""

    def __init__(self, boot_id: Path) -> None:
        self.phone = Phone()
        self._boot_id = boot_id
        self._locked = self._has_keyboard = False
        self.connections: set[asyncio.StreamWriter] = set()

    def run(self, words: list[str]) -> tuple[int, bytes]:
        """Do what the program WORDS does; return (exit code, what it prints)."""
        name, rest = words[0], words[1:]
        answer = getattr(self, f"_{name}", None)
        if answer is None:
            return 0, b""
        code, out = answer(rest)
        return code, out if isinstance(out, bytes) else f"{out}\n".encode() if out else b""

    def _input(self, words: list[str]) -> tuple[int, str]:
        return run_input(self.phone, words)

    def _am(self, words: list[str]) -> tuple[int, str]:
        return run_am(self.phone, words)

    def _screencap(self, _: list[str]) -> tuple[int, bytes]:
        return 0, self.phone.png()

    def _uiautomator(self, words: list[str]) -> tuple[int, str]:
        Path(words[1]).write_text(self.phone.xml())
        return 0, f"UI hierchary dumped to: {words[1]}"

    def _getprop(self, words: list[str]) -> tuple[int, str]:
        return 0, {"sys.boot_completed": "1"}.get(words[0], "")

    def _dumpsys(self, _: list[str]) -> tuple[int, str]:
        return 0, f"mDreamingLockscreen={str(self._locked).lower()}"

    def _cmd(self, words: list[str]) -> tuple[int, str]:
        listed = "\n".join(f"  {name}" for name in COMPONENTS)
        return (0, listed) if words[:2] == ["package", "query-activities"] else (1, "Error: no")

    def _ime(self, words: list[str]) -> tuple[int, str]:
        if words[0] == "list":
            return 0, "com.example/.Keyboard" + (f"\n{_KEYBOARD}" if self._has_keyboard else "")
        self.phone.keyboard = words == ["set", _KEYBOARD] or words[0] == "enable"
        return 0, ""

    def _simulate(self, words: list[str]) -> tuple[int, str]:
        """What a test does to the phone from outside."""
        match words:
            case ["keyboard"]:
                self._has_keyboard = True
            case ["locked", value]:
                self._locked = value == "yes"
            case ["reboot", boot_id]:
                self._boot_id.write_text(f"{boot_id}\n")
            case ["unplug"]:
                asyncio.get_running_loop().call_later(0.05, os._exit, 0)
            case ["log"]:
                return 0, "\n".join(self.phone.log)
            case ["note"]:
                return 0, repr(self.phone.note)
        return 0, ""


class Connection:
    """One adb server: streams by number, each with one service of ours behind it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._streams: dict[int, Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        while True:
            head = await self._reader.readexactly(24)
            command, arg0, arg1, length, _, magic = struct.unpack("<6I", head)
            assert magic == command ^ 0xFFFFFFFF
            data = await self._reader.readexactly(length)
            if command == _CNXN:
                self.send(_CNXN, 0x01000000, _MAX, _BANNER)
            elif command == _OPEN:
                stream = Stream(self, len(self._streams) + 1, arg0)
                self._streams[stream.local] = stream
                self.send(_OKAY, stream.local, arg0)
                task = asyncio.create_task(stream.run(data.rstrip(b"\0").decode()))
                self._tasks.add(task)
            elif stream := self._streams.get(arg1):
                stream.hear(command, data)

    def send(self, command: int, arg0: int, arg1: int, data: bytes = b"") -> None:
        check = sum(data) & 0xFFFFFFFF
        head = struct.pack("<6I", command, arg0, arg1, len(data), check, command ^ 0xFFFFFFFF)
        self._writer.write(head + data)


class Stream:
    """One service: what comes from the host is in `incoming`; each write waits for its OKAY."""

    def __init__(self, connection: Connection, local: int, remote: int) -> None:
        self._connection, self.local, self._remote = connection, local, remote
        self.incoming = asyncio.StreamReader()
        self._ready = asyncio.Event()
        self._closed = False

    def hear(self, command: int, data: bytes) -> None:
        if command == _WRTE:
            self.incoming.feed_data(data)
            self._connection.send(_OKAY, self.local, self._remote)
        elif command == _CLSE:
            self._closed = True
            self.incoming.feed_eof()
        self._ready.set()

    async def write(self, data: bytes) -> None:
        for at in range(0, len(data), _MAX):
            if self._closed:
                return
            self._ready.clear()
            self._connection.send(_WRTE, self.local, self._remote, data[at : at + _MAX])
            await self._ready.wait()

    async def run(self, service: str) -> None:
        kind, _, rest = service.partition(":")
        with suppress(asyncio.IncompleteReadError):
            if kind in ("exec", "shell"):
                await self._run(rest)
            elif kind == "sync":
                await self._sync()
        self._connection.send(_CLSE, self.local, self._remote)

    async def _run(self, command: str) -> None:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", command, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        while data := await process.stdout.read(_MAX):
            await self.write(data)
        await process.wait()

    async def _sync(self) -> None:
        while True:
            kind, length = struct.unpack("<4sI", await self.incoming.readexactly(8))
            if kind == b"QUIT":
                return
            path = Path((await self.incoming.readexactly(length)).decode())
            if kind == b"STAT":
                found = path.stat() if path.exists() else None
                values = (found.st_mode, found.st_size, int(found.st_mtime)) if found else (0, 0, 0)
                await self.write(b"STAT" + struct.pack("<3I", *values))
            elif kind == b"RECV":
                data = path.read_bytes()
                for at in range(0, len(data), 65536):
                    part = data[at : at + 65536]
                    await self.write(b"DATA" + struct.pack("<I", len(part)) + part)
                await self.write(b"DONE" + bytes(4))
            elif kind == b"SEND":
                await self._receive(Path(str(path).rpartition(",")[0]))

    async def _receive(self, path: Path) -> None:
        parts = []
        while True:
            kind, length = struct.unpack("<4sI", await self.incoming.readexactly(8))
            if kind == b"DONE":  # the length is the file's time
                break
            parts.append(await self.incoming.readexactly(length))
        path.write_bytes(b"".join(parts))
        await self.write(b"OKAY" + bytes(4))


async def serve(root: Path) -> None:
    """Serve one device; its port is in ROOT/port once it listens."""
    device = Device(root / "boot_id")

    async def adb(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await Connection(reader, writer).serve()
        writer.close()

    async def program(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        count = int((await reader.readuntil(b"\0"))[:-1])
        words = [(await reader.readuntil(b"\0"))[:-1].decode() for _ in range(count)]
        code, out = device.run(words)
        writer.write(f"{code}\n".encode() + out)
        writer.close()

    tools = await asyncio.start_server(program, "127.0.0.1", 0)
    os.environ["DEVICE_TOOLS"] = str(tools.sockets[0].getsockname()[1])
    os.environ["PATH"] = f"{root}/bin:/usr/bin:/bin"
    server = await asyncio.start_server(adb, "127.0.0.1", 0)
    part = root / "port.part"
    part.write_text(str(server.sockets[0].getsockname()[1]))
    part.replace(root / "port")
    await server.serve_forever()


def start(root: Path) -> subprocess.Popen[bytes]:
    """Start a device with its files in `root`; it listens once ROOT/port is there."""
    for folder in ("sdcard", "data/local/tmp", "bin"):
        (root / folder).mkdir(parents=True)
    (root / "boot_id").write_text("first-boot\n")
    for name in _PROGRAMS:
        stub = root / "bin" / name
        stub.write_text(_STUB)
        stub.chmod(0o755)
    binds = ["--dev-bind", "/proc", "/proc", "--dev", "/dev"]
    for entry in sorted(Path("/").iterdir()):
        if entry.is_symlink():
            binds += ["--symlink", os.readlink(entry), str(entry)]
        elif entry.is_dir() and entry.name not in ("proc", "dev", "sdcard", "data"):
            binds += ["--bind", str(entry), str(entry)]
    binds += ["--bind", f"{root}/sdcard", "/sdcard", "--bind", f"{root}/data", "/data"]
    binds += ["--bind", f"{root}/boot_id", "/proc/sys/kernel/random/boot_id"]
    code = [sys.executable, "-m", "tests.sandbox.android_device", str(root)]
    return subprocess.Popen(["bwrap", "--die-with-parent", *binds, "--", *code])


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
