"""`python -m guest.serial`: the guest's way out of a virtual machine, by a virtio serial port.

Runs as root inside the machine: it carries connections to the guest and, when a machine was forked
or restored, makes it another one: clock, randomness, machine id and boot id are the host's to give.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import fcntl
import json
import os
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

from guest.mux import ANSWER, Link, LinkBroken, Stream, splice

_RNDADDENTROPY, _RNDRESEEDCRNG = 0x40085203, 0x5207  # linux/random.h
_KERNEL_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_READ = 64 << 10
_RETRY_S = 0.02
_HIGH_WATER = 256 << 10


class Port:
    """The port as bytes in and out; while no host has it open, it waits."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._out = bytearray()
        self._room = asyncio.Event()
        self._room.set()
        self._loop = asyncio.get_running_loop()
        self._writing = False

    def write(self, data: bytes) -> None:
        self._out += data
        if len(self._out) > _HIGH_WATER:
            self._room.clear()
        self._flush()

    async def drain(self) -> None:
        await self._room.wait()

    async def read(self) -> bytes:
        """Return what came; b"" when the host has let go of the port, after a moment."""
        while True:
            try:
                data = os.read(self._fd, _READ)
            except BlockingIOError:
                await self._readable()
                continue
            if not data:
                self._out.clear()
                self._room.set()
                await asyncio.sleep(_RETRY_S)  # a port without a host is readable all the time
            return data

    async def _readable(self) -> None:
        ready = asyncio.Event()
        self._loop.add_reader(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(self._fd)

    def _flush(self) -> None:
        while self._out:
            try:
                sent = os.write(self._fd, self._out[:_READ])
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EPIPE, errno.ENODEV, errno.EIO):
                    raise
                if not self._writing:
                    self._writing = True
                    self._loop.call_later(0.002, self._again)
                return
            del self._out[:sent]
        self._room.set()

    def _again(self) -> None:
        self._writing = False
        self._flush()


class Way:
    """Serves the port: streams to the guest or to a TCP port of this machine, and renewals."""

    def __init__(self, port: Port, run: Path) -> None:
        self._port = port
        self._run = run
        self._tasks: set[asyncio.Task[None]] = set()
        self._link = Link(port.write, port.drain, opened=self._opened, asked=self._asked)

    async def serve(self) -> None:
        while True:
            data = await self._port.read()
            try:
                if data:
                    self._link.feed(data)
                else:
                    self._link.lose()
            except LinkBroken as error:
                print(f"guest.serial: {error}", flush=True)
                self._link.lose()

    def _opened(self, stream: Stream, service: str) -> None:
        self._keep(self._carry(stream, service))

    def _asked(self, question: bytes) -> None:
        self._keep(self._answer(question))

    def _keep(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, stream: Stream, service: str) -> None:
        try:
            if service == "guest":
                ends = await asyncio.open_unix_connection(str(self._run / "guest.sock"))
            elif service.startswith("port:"):
                ends = await asyncio.open_connection("127.0.0.1", int(service[5:]))
            else:
                raise ValueError(f"no service {service!r}")
        except (OSError, ValueError):
            return stream.reset()
        await splice(stream, *ends)

    async def _answer(self, question: bytes) -> None:
        asked_at = time.monotonic()
        try:
            wanted = json.loads(question)
            renew(wanted)
            answer = await self._session(wanted)
            # Last: it wakes half the machine, and an emulated processor has none to spare.
            passed = time.monotonic() - asked_at
            time.clock_settime(time.CLOCK_REALTIME, float(wanted["time"]) + passed)
        except Exception as error:  # the boundary: the host hears what broke
            answer = json.dumps({"error": f"{type(error).__name__}: {error}"}).encode()
        self._link.send(ANSWER, 0, answer)

    async def _session(self, wanted: dict[str, Any]) -> bytes:
        """Hand the renewal on to the session; at the first boot it may not be there yet."""
        wait_s = float(wanted.get("wait_s", 30.0))
        deadline = time.monotonic() + wait_s
        while True:
            # Nothing else may go on meanwhile, so this blocks: the least code to translate.
            with socket.socket(socket.AF_UNIX) as session:
                session.settimeout(wait_s)
                try:
                    session.connect(str(self._run / "renew.sock"))
                except OSError:
                    if time.monotonic() > deadline or _session_failed():
                        raise
                else:
                    session.sendall(json.dumps(wanted).encode() + b"\n")
                    return session.recv(_READ)
            await asyncio.sleep(1.0)


def renew(wanted: dict[str, Any]) -> None:
    """Make this machine another one than it was forked or restored from, but for its clock."""
    seed = bytes.fromhex(wanted["seed"])
    with open("/dev/urandom", "wb", buffering=0) as pool:
        pool.write(seed)
        entropy = struct.pack("ii", 8 * len(seed), len(seed)) + seed
        fcntl.ioctl(pool, _RNDADDENTROPY, entropy)
        fcntl.ioctl(pool, _RNDRESEEDCRNG, 0)
    Path("/etc/machine-id").write_text(f"{wanted['machine_id']}\n")
    kernel = Path("/run/kernel-boot-id")
    mounted = kernel.exists()
    kernel.write_text(f"{wanted['kernel_boot_id']}\n")
    if not mounted:
        subprocess.run(["mount", "--bind", str(kernel), _KERNEL_BOOT_ID], check=True)


def _session_failed() -> bool:
    """Whether the desktop's session has ended: its reason is on the console."""
    asked = ["systemctl", "is-failed", "--quiet", "tandem-session.service"]
    return subprocess.run(asked, check=False).returncode == 0


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="guest.serial", description=__doc__)
    parser.add_argument("--port", required=True)
    parser.add_argument("--run", type=Path, required=True)
    options = parser.parse_args()

    async def serve() -> None:
        await Way(Port(options.port), options.run).serve()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
