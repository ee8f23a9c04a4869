"""The container image of a desktop: Debian packages made into a file system, then imported.

No image registry is asked: mmdebstrap takes the packages from a Debian mirror. The guest's own code
is mounted at start and not part of the image, so only a change of this recipe needs a new one.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from sandbox.images import packages
from sandbox.provider import ProvisionFailed
from sandbox.providers.container import engine

REPOSITORY = "localhost/tandem-desktop"
_FOLDERS = ("opt/tandem", "run/tandem", "run/user", "home/user", "var/lib/xkb", "tmp/.X11-unix")
"""What is mounted over at start: the root is read-only by then, so they have to be there."""


def wanted() -> tuple[str, ...]:
    """Return the Debian packages of the image."""
    return (*packages.DESKTOP, *packages.CONTAINER)


def tag() -> str:
    """Return the image's name; it ends in a digest of the recipe, so a changed recipe is missing."""
    recipe = [packages.SUITE, wanted(), packages.LEFT_OUT, _FOLDERS, _command(Path("TAR"))]
    return f"{REPOSITORY}:{hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:16]}"


def build(cache: Path) -> str:
    """Make the image and give it to the engine; return its tag. At once if it is there already.

    Takes minutes, and about 1.5 GiB below `cache` meanwhile. Raises ProvisionFailed with the log.
    """
    client = engine.connect()
    try:
        if client.images.list(name=tag()):
            return tag()
        if shutil.which("mmdebstrap") is None:
            raise ProvisionFailed("mmdebstrap is missing: apt-get install mmdebstrap")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            tar = Path(folder, "desktop.tar")
            made = subprocess.run(_command(tar), capture_output=True, text=True, check=False)
            if made.returncode:
                raise ProvisionFailed(f"mmdebstrap failed: {made.stderr[-1500:].strip()}")
            repository, _, digest = tag().rpartition(":")
            client.api.timeout = 600
            client.api.import_image_from_file(str(tar), repository=repository, tag=digest)
    finally:
        client.close()
    return tag()


def _command(tar: Path) -> list[str]:
    command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(wanted())}"]
    command += [f"--dpkgopt=path-exclude={pattern}" for pattern in packages.LEFT_OUT]
    command += [f'--customize-hook=mkdir -p "$1/{folder}"' for folder in _FOLDERS]
    # A file to be mounted over as well.
    command += ['--customize-hook=touch "$1/etc/machine-id"']
    return [*command, packages.SUITE, str(tar)]
