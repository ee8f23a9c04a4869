"""`python -m sandbox.images build NAME`: build an image once, into the user's cache."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from sandbox.images import cache, container, demo_pages, pod, qemu
from sandbox.provider import ProvisionFailed, SandboxSpec
from sandbox.providers.qemu import template


def machine(say: cache.Say) -> Path:
    """Build the disk, then boot what the host starts from it: with the demo pages, and without."""
    built = qemu.build(say)
    plain = SandboxSpec("")
    for shared in ({}, demo_pages()):
        template.ensure(memory_mb=plain.memory_mb, cpus=1, shared=shared, say=say)
    return built


RECIPES = {"container": container.build, "pod": pod.build, "qemu": machine}


def main() -> None:
    """Build what is asked for, saying each step; exit status 1 with the reason if it fails."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.images", description=__doc__)
    parser.add_argument("do", choices=["build"])
    parser.add_argument("name", choices=sorted(RECIPES))
    options = parser.parse_args()
    started = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - started:6.1f} s] {what}", flush=True)

    try:
        print(f"built: {RECIPES[options.name](say)}")
    except ProvisionFailed as error:
        sys.exit(f"images: {error}")


if __name__ == "__main__":
    main()
