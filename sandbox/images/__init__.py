"""What a computer of each image is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from sandbox import miniwob
from sandbox.provider import ProvisionFailed, SandboxSpec


class Wanted(Protocol):
    """What an image needs to know: the name, the recipe and the size in pixels."""

    name: str
    image: str
    width: int
    height: int


def spec_for(wanted: Wanted) -> SandboxSpec:
    """Return what to start; raises ProvisionFailed for an image that there is no recipe for."""
    if wanted.image != "desktop":
        raise ProvisionFailed(f"no image {wanted.image!r}; there is: desktop")
    return SandboxSpec(
        name=wanted.name,
        image=wanted.image,
        width=wanted.width,
        height=wanted.height,
        shared=demo_pages(),
    )


def demo_pages() -> dict[str, Path]:
    """Return the MiniWoB pages where they are installed; their tasks say so where they are not."""
    try:
        return {miniwob.FOLDER: miniwob.assets()}
    except FileNotFoundError:
        return {}
