"""The image of a pod: the container's, with the guest's code in it. A node has no folder to mount."""

from __future__ import annotations

import io
import tarfile

from docker.errors import BuildError

from sandbox.images import cache, code, container
from sandbox.provider import ProvisionFailed
from sandbox.providers.container import engine
from sandbox.providers.container.shape import GUEST_CODE, MODULES

REPOSITORY = "localhost/tandem-pod"


def tag() -> str:
    """Return the image's name; a changed recipe or guest makes it another one."""
    return (
        f"{REPOSITORY}:{cache.digest(container.tag(), *sorted(code.compiled(*MODULES).iterdir()))}"
    )


def build(say: cache.Say) -> str:
    """Make the image and give it to the engine; return its tag, to be pushed where nodes find it.

    Raises ProvisionFailed with what the engine says.
    """
    base = container.build(say)
    client = engine.connect()
    try:
        if client.images.list(name=tag()):
            return tag()
        say("adding the guest's code")
        with io.BytesIO(_context(base)) as context:
            client.images.build(fileobj=context, custom_context=True, tag=tag(), rm=True)
    except BuildError as error:
        raise ProvisionFailed(f"the engine could not build {tag()}: {error}") from error
    finally:
        client.close()
    return tag()


def _context(base: str) -> bytes:
    """Return what the engine builds from, as a tar file."""
    recipe = f"FROM {base}\nCOPY code {GUEST_CODE}\nUSER 1000:1000\n".encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        file = tarfile.TarInfo("Dockerfile")
        file.size = len(recipe)
        tar.addfile(file, io.BytesIO(recipe))
        tar.add(code.compiled(*MODULES), "code", filter=_plain)
    return packed.getvalue()


def _plain(file: tarfile.TarInfo) -> tarfile.TarInfo:
    """Belong to nobody: a pod's user owns nothing of it."""
    file.uid = file.gid = 0
    return file
