"""The command line of a machine. A fork must have the very devices of the template it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sandbox.providers.qemu.accel import Accel

_APPEND = (
    "root=/dev/vda rw console=ttyS0 quiet loglevel=3 mitigations=off nokaslr random.trust_cpu=on audit=0 "
    "panic=1 unknown_nmi_panic systemd.show_status=no"
)
WIDTH, HEIGHT = 1280, 720
"""The screen of a template; another size is set after the fork."""

DISK = "d0"
VGA_SLOT, VRAM_MB = 2, 16


@dataclass(frozen=True, slots=True)
class Machine:
    """What QEMU is told. `memory` is the file of the RAM: the template writes it (`share`), a fork
    maps it copy-on-write; `run` is the folder of the sockets."""

    name: str
    accel: Accel
    memory_mb: int
    cpus: int
    memory: Path
    share: bool
    disk: Path
    code: Path
    kernel: Path
    initrd: Path
    run: Path
    password: Path | None = None
    user: int | None = None
    """The uid that QEMU goes on with once it has opened its files; None: the caller's own."""

    def command(self) -> list[str]:
        share = "on" if self.share else "off"
        ram = f"memory-backend-file,id=ram,size={self.memory_mb}M,mem-path={self.memory}"
        arguments = [
            *("qemu-system-x86_64", "-name", self.name, "-nodefaults", "-no-user-config"),
            *("-M", "q35,usb=off,vmport=off,memory-backend=ram", *self.accel.arguments),
            *("-smp", str(self.cpus), "-m", f"{self.memory_mb}M", "-no-reboot"),
            *("-object", f"{ram},share={share}"),
            *("-blockdev", _file("f0", self.disk)),
            *("-blockdev", f"driver=qcow2,node-name={DISK},file=f0"),
            *("-device", f"virtio-blk-pci,drive={DISK},id=vda,addr=4"),
            *("-blockdev", _file("f1", self.code, read_only=True)),
            *("-device", "virtio-blk-pci,drive=f1,id=vdb,addr=5"),
            *("-kernel", str(self.kernel), "-initrd", str(self.initrd), "-append", _APPEND),
            *("-device", _card()),
            *("-device", "virtio-keyboard-pci,addr=6", "-device", "virtio-tablet-pci,addr=7"),
            *("-device", "virtio-serial-pci,id=serial,addr=8"),
            *("-chardev", f"socket,id=way,path={self.run}/way.sock,server=on,wait=off"),
            *("-device", "virtserialport,chardev=way,name=tandem.0,bus=serial.0"),
            *("-device", "virtio-rng-pci,addr=9", "-nic", "none"),
            *("-serial", f"file:{self.run}/serial.log"),
            *("-qmp", f"unix:{self.run}/qmp.sock,server=on,wait=off"),
            *("-qmp", f"unix:{self.run}/screen.sock,server=on,wait=off"),
            # Devices are saved in one way with the memory and in another without: let them agree.
            *("-global", "migration.send-configuration=off"),
            *("-sandbox", "on,obsolete=deny,resourcecontrol=deny,spawn=deny"),
        ]
        if self.user is not None:
            arguments += ["-runas", f"{self.user}:{self.user}"]
        if self.password is None:
            return [*arguments, "-display", "none"]
        arguments += ["-object", f"secret,id=rfb,file={self.password}"]
        arguments += ["-vnc", f"unix:{self.run}/rfb.sock,password-secret=rfb"]
        return [*arguments, "-incoming", "defer", "-S"]


def _card() -> str:
    return f"VGA,edid=on,xres={WIDTH},yres={HEIGHT},vgamem_mb={VRAM_MB},addr={VGA_SLOT}"


def _file(name: str, path: Path, *, read_only: bool = False) -> str:
    # A sandbox's disk is thrown away with it: nothing is gained by flushing it.
    cache = "" if read_only else ",cache.no-flush=on"
    flags = ",read-only=on" if read_only else ",discard=unmap"
    return f"driver=file,node-name={name},filename={path}{cache}{flags}"
