"""`python -m sandbox.providers.android.guest`: one phone as a sandbox of its own.

It holds the phone, speaks the guests' HTTP API on one unix socket and RFB on another, so that all that
was built for desktops works on it: the relay, the workbench, capture, taking over and fencing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import NoReturn, cast

from guest.computer import Computer
from guest.server import Server
from sandbox.provider import DesktopLost, ProvisionFailed
from sandbox.providers.android import devices
from sandbox.providers.android.adb import Adb
from sandbox.providers.android.computer import PhoneComputer
from sandbox.providers.android.phone import Phone
from sandbox.providers.android.touch import Hand, View
from sandbox.providers.screen import Screen

_RENEW_S = 5.0


def claim(home: Path, *, nonce: str) -> Phone:
    """Return the first listed phone that is free and comes up; raises ProvisionFailed with each cause."""
    listed = devices.load(home / "devices.toml")
    causes = []
    for device in listed.devices:
        if devices.hold(home, device) is None:
            causes.append(f"{device.serial} is held by another sandbox of this host")
            continue
        phone = Phone(Adb(device.serial, server=listed.server), nonce=nonce, owner=_owner(home))
        try:
            phone.take(device)
            return phone
        except DesktopLost as error:
            causes.append(str(error))
    raise ProvisionFailed(f"no phone is free: {'; '.join(causes)}")


def _owner(home: Path) -> str:
    """Return the name under which this host's claims are known to others: without spaces."""
    machine = Path("/etc/machine-id")
    host = machine.read_text().strip() if machine.exists() else os.uname().nodename
    return f"{host}:{home.stat().st_dev}:{home.stat().st_ino}"


async def _serve(computer: PhoneComputer, phone: Phone, folder: Path, name: str) -> None:
    """Serve RFB for good; the file `ready` says that both sockets listen."""
    hand = Hand(computer, phone)
    screen = Screen(View(phone), hand.act, width=phone.width, height=phone.height, name=name)
    async with await screen.listen(folder / "rfb.sock") as server:
        (folder / "ready").touch()
        await server.serve_forever()


def main() -> None:
    """Serve until told to end (SIGTERM) or until the phone is lost; `cause` then says why."""
    parser = argparse.ArgumentParser(prog="sandbox.providers.android.guest", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True, help="folder of devices.toml")
    parser.add_argument("--boot-id", required=True)
    parser.add_argument("--name", default="phone")
    options = parser.parse_args()
    os.umask(0o077)
    over, ending = threading.Event(), threading.Lock()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    folder: Path = options.folder

    def end(cause: str) -> NoReturn:
        ending.acquire()  # for good: one thread ends the process, the others wait for that
        if cause:
            (folder / "cause").write_text(cause)
        os._exit(1 if cause else 0)

    try:
        phone = claim(options.home, nonce=options.boot_id)
    except ProvisionFailed as error:
        end(str(error))
    computer = PhoneComputer(phone, boot_id=options.boot_id, ended=end)
    # The server asks for no more than PhoneComputer has; its type names the class it grew up with.
    server = Server(folder / "guest.sock", cast(Computer, computer), limits="the phone's own")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    serving = _serve(computer, phone, folder, options.name)
    threading.Thread(target=asyncio.run, args=(serving,), daemon=True).start()
    while not over.wait(_RENEW_S):
        try:
            phone.renew()
        except DesktopLost as error:
            end(str(error))
    phone.give_back()
    end("")


if __name__ == "__main__":
    main()
