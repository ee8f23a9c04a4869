"""The container image of a desktop: Debian packages made into a file system, then imported.

No image registry is asked: mmdebstrap takes the packages from a Debian mirror. The guest's own code
is mounted at start and not part of the image, so only a change of this recipe needs a new one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from sandbox.images import cache, packages
from sandbox.provider import ProvisionFailed
from sandbox.providers.container import engine

REPOSITORY = "localhost/tandem-desktop"
_ANYONES = ("home", "var/lib/xkb")
"""Where a file system in memory is mounted at start; runc gives that one the mode of the folder."""


def wanted() -> tuple[str, ...]:
    """Return the Debian packages of the image."""
    return (*packages.DESKTOP, *packages.CONTAINER)


def tag() -> str:
    """Return the image's name; it ends in a digest of the recipe, so a changed recipe is missing."""
    return f"{REPOSITORY}:{cache.digest(*_command(Path('desktop.tar')))}"


def build(say: cache.Say) -> str:
    """Make the image and give it to the engine; return its tag. At once if it is there already.

    Takes minutes, and some GiB of the cache meanwhile. Raises ProvisionFailed with the log's end.
    """
    client = engine.connect()
    try:
        if client.images.list(name=tag()):
            return tag()
        if shutil.which("mmdebstrap") is None:
            raise ProvisionFailed("mmdebstrap is missing: apt-get install mmdebstrap")
        cache.folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache.folder()) as folder:
            tar = Path(folder, "desktop.tar")
            say(f"installing {len(wanted())} Debian packages and what they need")
            made = subprocess.run(_command(tar), capture_output=True, text=True, check=False)
            if made.returncode:
                raise ProvisionFailed(f"mmdebstrap failed: {made.stderr[-1500:].strip()}")
            say(f"importing {tar.stat().st_size >> 20} MiB")
            repository, _, digest = tag().rpartition(":")
            client.api.timeout = 600
            answer = client.api.import_image_from_file(str(tar))
            # Podman does not heed a tag that comes with the import.
            client.api.tag(_imported(answer), repository, digest)
    finally:
        client.close()
    return tag()


def _imported(answer: str) -> str:
    """Return the id of what was imported; raises ProvisionFailed with what the engine says."""
    said = json.loads(answer.strip().splitlines()[-1])
    if not str(said.get("status", "")).startswith("sha256:"):
        raise ProvisionFailed(f"the engine did not import it: {said}")
    return str(said["status"])


def _command(tar: Path) -> list[str]:
    command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(wanted())}"]
    command += [f"--dpkgopt=path-exclude={pattern}" for pattern in packages.LEFT_OUT]
    command += [f'--customize-hook=chmod 1777 "$1/{f}"' for f in _ANYONES]
    # A file to be mounted over as well.
    command += ['--customize-hook=touch "$1/etc/machine-id"']
    return [*command, packages.SUITE, str(tar)]
