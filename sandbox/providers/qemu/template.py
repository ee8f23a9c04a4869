"""The ready desktop that machines are forked from: disk, memory and device state, kept in the cache.

Made once for each image, guest, size of machine and QEMU: boot, wait for the desktop, stop, write
the devices. Its memory is a file that the booting QEMU shares and that forks map copy-on-write.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from sandbox.images import cache as images
from sandbox.images import code
from sandbox.images import qemu as image
from sandbox.provider import DesktopLost, ProvisionFailed, SandboxError
from sandbox.providers.qemu import accel, way
from sandbox.providers.qemu.accel import Accel
from sandbox.providers.qemu.command import HEIGHT, WIDTH, Machine
from sandbox.providers.qemu.qmp import Monitor

_BOOT_S = 1500.0
"""An emulated machine boots in 40 s on an idle host; several at once on two cores take minutes."""

_STILL_S = 1.0
_KEPT = 4
_DISK = "disk.qcow2"


@dataclass(frozen=True, slots=True)
class Template:
    """`folder` holds disk.qcow2, overlay.qcow2 (empty, for a fork to copy), ram, devices, code.tar."""

    folder: Path
    image: Path
    accel: Accel
    memory_mb: int
    cpus: int

    def machine(
        self,
        name: str,
        run: Path,
        disk: Path,
        *,
        password: Path | None = None,
        user: int | None = None,
    ) -> Machine:
        """Return a fork of this template (with a password) or the one that boots it."""
        return Machine(
            name=name,
            accel=self.accel,
            memory_mb=self.memory_mb,
            cpus=self.cpus,
            memory=self.folder / "ram",
            share=password is None,
            disk=disk,
            code=self.folder / "code.tar",
            kernel=self.image / "kernel",
            initrd=self.image / "initrd",
            run=run,
            password=password,
            user=user,
        )


def ensure(*, memory_mb: int, cpus: int, shared: Mapping[str, Path], say: images.Say) -> Template:
    """Return the template of such machines, made now if it is not there: a minute or more.

    Raises ProvisionFailed if the image is not built, or with the end of the machine's own log.
    """
    place, template = _wanted(memory_mb, cpus, shared)

    def make(part: Path) -> None:
        say(f"booting the desktop once with {memory_mb} MiB ({template.accel.limits})")
        _make(replace(template, folder=part), shared, place, say)
        _forget_old(place)

    images.build(place, make)
    os.utime(place)
    return template


def there(*, memory_mb: int, cpus: int, shared: Mapping[str, Path]) -> bool:
    """Whether such machines can be forked at once; False too where the image is not built."""
    return image.built() is not None and _wanted(memory_mb, cpus, shared)[0].is_dir()


def _wanted(memory_mb: int, cpus: int, shared: Mapping[str, Path]) -> tuple[Path, Template]:
    disk = image.built()
    if disk is None:
        raise ProvisionFailed(
            "the machine's image is not built: python -m sandbox.images build qemu"
        )
    chosen = accel.choose(disk / "kernel", images.folder())
    template = Template(Path(), disk, chosen, memory_mb, cpus)
    place = images.place("qemu-template", _name(template, shared))
    return place, replace(template, folder=place)


def _name(template: Template, shared: Mapping[str, Path]) -> str:
    """Return the digest of all that a template comes from."""
    machine = template.machine("", Path("run"), Path("disk")).command()
    return images.digest(
        *(_version(), template.image.name, *machine),
        *(part for folder in _code().values() for part in _parts(folder)),
        *(part for guest, folder in shared.items() for part in (guest, _digest(folder))),
    )


def _digest(folder: Path) -> str:
    """Return what changes whenever a file below `folder` does; the same for the same files elsewhere."""
    return _digest_of(folder, _state(folder))


@lru_cache(maxsize=16)
def _digest_of(folder: Path, state: str) -> str:
    return images.digest(folder)


def _state(folder: Path) -> str:
    """Return the names, sizes and times of the files below `folder`: what is cheap to look at."""
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - {"__pycache__"})
        for file in sorted(files):
            stat = os.stat(os.path.join(parent, file))
            place = os.path.relpath(parent, folder)
            found.append(f"{place}/{file} {stat.st_size} {stat.st_mtime_ns}")
    return "\n".join(found)


def _code() -> dict[str, Path]:
    """Return the modules that run inside and that Debian's Python does not bring, by name."""
    folders = {}
    for name in ("guest", "trajectory", "websockets", "jeepney"):
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ProvisionFailed(f"the Python module {name} is missing: install tandem[guest]")
        folders[name] = Path(spec.origin).parent
    return folders


def _parts(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.name != "__pycache__" and not code.is_apart(p))


@cache
def _version() -> str:
    """Return QEMU's version: the state of one is not promised to load in another."""
    return subprocess.run(
        ["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True
    ).stdout


def _make(template: Template, shared: Mapping[str, Path], final: Path, say: images.Say) -> None:
    part = template.folder
    _pack(part / "code.tar", shared)
    _image("create", "-b", str(template.image / _DISK), "-F", "qcow2", str(part / _DISK))
    with tempfile.TemporaryDirectory(prefix="tandem-") as run:
        machine = template.machine("template", Path(run), part / _DISK)
        log = Path(run, "serial.log")
        with (part / "qemu.log").open("wb") as out:
            # Killed with whoever builds it, however that one ends.
            command = ["setpriv", "--pdeathsig", "KILL", "--", *machine.command()]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            asyncio.run(_booted(Path(run)))
            say("saving its memory")
            with Monitor(Path(run, "qmp.sock"), timeout_s=120.0) as monitor:
                _wait_until_still(monitor, Path(run, "still.ppm"))
                _save(monitor, part / "devices")
            process.wait(30)
        except (SandboxError, TimeoutError, subprocess.TimeoutExpired) as error:
            said = (part / "qemu.log").read_text(errors="replace") + _text(log)
            raise ProvisionFailed(f"no template: {error}: {said[-1500:].strip()}") from error
        finally:
            process.kill()
            process.wait()
    # Backed by the place it will have: nothing reads it before.
    size = "-u", "-b", str(final / _DISK), "-F", "qcow2"
    _image("create", *size, str(part / "overlay.qcow2"), "12G")


async def _booted(run: Path) -> None:
    """Return when the desktop inside is ready; raises DesktopLost."""
    Monitor(run / "qmp.sock").close()  # once it answers, all its sockets do
    inside = await way.connect(run / "way.sock", seconds=_BOOT_S)
    wanted = way.identity(
        boot_id="template", width=WIDTH, height=HEIGHT, limits="template", wait_s=_BOOT_S
    )
    await inside.renew(wanted, seconds=_BOOT_S)
    await inside.close()


def _wait_until_still(monitor: Monitor, picture: Path) -> None:
    """Return when the screen has not changed for a second: the panel is drawn, programs are idle."""
    before, deadline = b"", time.monotonic() + 60.0
    while time.monotonic() < deadline:
        monitor.run("screendump", filename=str(picture))
        now = picture.read_bytes()
        if now == before:
            return
        before = now
        time.sleep(_STILL_S)
    raise DesktopLost("the desktop did not come to rest within 60 s")


def _save(monitor: Monitor, devices: Path) -> None:
    monitor.run("stop")
    capabilities = [{"capability": "x-ignore-shared", "state": True}]
    monitor.run("migrate-set-capabilities", capabilities=capabilities)
    with devices.open("wb") as out:
        monitor.give("state", out.fileno())
        monitor.run("migrate", uri="fd:state")
        monitor.wait_for("query-migrate", {"completed"}, broken={"failed", "cancelled"})
    with contextlib.suppress(DesktopLost):
        monitor.run("quit")


def _pack(tar: Path, shared: Mapping[str, Path]) -> None:
    """Write the second disk: a tar of the guest's modules and of the shared folders."""

    def keep(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if "__pycache__" in entry.name or entry.name.endswith((".so", ".pyc")):
            return None
        if code.is_apart(Path(entry.name)):
            return None
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode |= 0o444 | (0o111 if entry.isdir() else 0)
        return entry

    with tarfile.open(tar, "w") as archive:
        for name, folder in _code().items():
            archive.add(folder, f"opt/tandem/{name}", filter=keep)
        for place, folder in shared.items():
            archive.add(folder, place.lstrip("/"), filter=keep)


def _image(*arguments: str) -> None:
    command = ["qemu-img", arguments[0], "-q", "-f", "qcow2", *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ProvisionFailed(f"qemu-img: {done.stderr.strip()}")


def _forget_old(place: Path) -> None:
    """Remove the templates that were not used for longest and that no machine was forked of."""
    others = [p for p in place.parent.glob("qemu-template-*") if p.is_dir() and p.suffix != ".part"]
    others.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in others[_KEPT - 1 :]:
        if not _in_use(folder / "ram"):
            shutil.rmtree(folder, ignore_errors=True)


def _in_use(ram: Path) -> bool:
    """Whether a QEMU runs on this memory: a restore puts back from it what a fork has changed."""
    for said in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if os.fsencode(ram) in said.read_bytes():
                return True
    return False


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
