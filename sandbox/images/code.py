"""The guest's own code as sandboxes mount it: only the modules it needs, with their byte code.

A sandbox can't write byte code where its code is read-only, and most installers leave none: without
this every start would compile some three hundred files, which takes longer than the rest of it.
"""

from __future__ import annotations

import compileall
import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

from sandbox.images import cache
from sandbox.provider import ProvisionFailed

OURS = ("guest", "trajectory")
APART = frozenset({"trajectory/hand", "trajectory/recording.py"})
"""What of it no guest ever imports: a change there makes no new computers."""
_BESIDE = {"PIL": "pillow.libs"}
"""Where a wheel keeps the shared libraries that its modules look for beside themselves."""


def compiled(*modules: str) -> Path:
    """Return a folder of the cache to import `modules` from; made if one of their files is new.

    The byte code is of this Python; another version reads the sources beside it. Raises
    ProvisionFailed naming a module that is missing, or why the cache can't be written.
    """
    sources = [source for module in modules for source in _sources(module)]
    about = [sys.implementation.cache_tag, *(mark for s in sources for mark in _marks(s))]
    try:
        return cache.build(
            cache.place("code", cache.digest(*about)), lambda part: _make(part, sources)
        )
    except OSError as error:
        raise ProvisionFailed(
            f"can't keep the guest's code in {cache.folder()}: {error}"
        ) from error


def _sources(module: str) -> Iterator[Path]:
    """Yield the package's folder or the module's file, and what belongs beside it."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ProvisionFailed(f"the Python module {module} is missing: install tandem[guest]")
    origin = Path(spec.origin).resolve()
    source = origin.parent if origin.name == "__init__.py" else origin
    yield source
    if module in _BESIDE and (beside := source.with_name(_BESIDE[module])).is_dir():
        yield beside


def _marks(source: Path) -> Iterator[str]:
    """Yield what changes with a file: reading all of them would take longer than a start may."""
    for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
        if is_apart(file):
            continue
        if file.suffix != ".pyc" and file.is_file():
            about = file.stat()
            yield f"{file} {about.st_size} {about.st_mtime_ns}"


def is_apart(file: Path) -> bool:
    """Whether `file` is, or lies in, what no guest imports."""
    return any(f"{place.parent.name}/{place.name}" in APART for place in (file, *file.parents))


def _not_copied(folder: str, names: list[str]) -> set[str]:
    return {n for n in names if n == "__pycache__" or is_apart(Path(folder, n))}


def _make(part: Path, sources: list[Path]) -> None:
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, part / source.name, ignore=_not_copied)
        else:
            shutil.copyfile(source, part / source.name)
    # Not by the files' times: an image may give them others.
    compileall.compile_dir(part, quiet=2, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
    for place in (part, *part.rglob("*")):
        # A sandbox's user owns nothing of it.
        place.chmod(0o755 if place.is_dir() or place.stat().st_mode & 0o100 else 0o644)
