"""Files of the desktop's user: nothing outside the home folder is read or written.

A path is walked folder by folder with descriptors, and a link is read, never followed by the kernel:
one that leads out of the home is refused, also if it is put there while the path is walked.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from guest.errors import ActionFailed, NotFound

MAX_BYTES = 32 * 1024 * 1024
MAX_CHUNK = 4 * 1024 * 1024
MAX_ENTRIES = 5000
MAX_DEPTH = 32
_MAX_LINKS = 20
_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a named pipe must not make us wait
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Entry:
    """What is at `path` below the home; `changed_us` moves on when it is made, written or moved."""

    path: str
    folder: bool
    size: int
    modified_at: float
    changed_us: int


class Home:
    """The home folder; every method raises NotFound, or ActionFailed saying what is refused."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> bytes:
        """Return a whole file of at most MAX_BYTES."""
        data, size, _ = self.read_part(path, offset=0, length=MAX_BYTES)
        if size > MAX_BYTES:
            raise ActionFailed(f"{path} is bigger than {MAX_BYTES} bytes: read it in parts")
        return data

    def read_part(self, path: str, *, offset: int, length: int) -> tuple[bytes, int, str]:
        """Return (bytes, the file's size, its version); another version is another content."""
        with self._file(path, os.O_RDONLY) as file:
            about = os.fstat(file)
            parts, left = [], length
            while left > 0 and (part := os.pread(file, left, offset + length - left)):
                parts.append(part)
                left -= len(part)
        version = f"{about.st_ino}-{about.st_mtime_ns}-{about.st_size}"
        return b"".join(parts), about.st_size, version

    def write(self, path: str, data: bytes) -> None:
        """Write a file, whole or not at all, with the folders above it."""
        self.write_part(path, data, offset=0, upload=secrets.token_hex(8), last=True)

    def write_part(self, path: str, data: bytes, *, offset: int, upload: str, last: bool) -> None:
        """Write one part of `upload`; the file appears under its name, whole, with the last one.

        The same part again changes nothing, so a caller may repeat what was not answered.
        """
        if not upload.isalnum() or len(upload) > 64:
            raise ActionFailed("an upload is named by at most 64 letters and digits")
        with self._parent(path, make=True) as (folder, name), _refused("write", path):
            part = f".{upload}.part"
            flags = os.O_WRONLY | os.O_CREAT | _OPEN
            file = os.open(part, flags, 0o666, dir_fd=folder)
            try:
                left = memoryview(data)
                while left:
                    written = os.pwrite(file, left, offset + len(data) - len(left))
                    left = left[written:]
                if last:
                    os.ftruncate(file, offset + len(data))
                    os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(part, dir_fd=folder)
                raise
            finally:
                os.close(file)

    def entries(self, path: str) -> list[Entry]:
        """Return what is in a folder, by name; links are listed, not followed."""
        found: list[Entry] = []
        with self._folder(path) as folder:
            prefix = _relative(path)
            for entry in _entries(folder, prefix):
                found.append(entry)
                if len(found) > MAX_ENTRIES:
                    raise ActionFailed(f"{path or 'the home'} has more than {MAX_ENTRIES} entries")
        return sorted(found, key=lambda entry: entry.path)

    def changed(self, path: str, *, since_us: int | None) -> list[Entry]:
        """Return what changed below a folder at or after `since_us`; None: the newest, as a start."""
        with self._folder(path) as folder:
            found = []
            for count, entry in enumerate(_tree(folder, _relative(path), MAX_DEPTH)):
                found.append(entry)
                if count > MAX_ENTRIES:
                    raise ActionFailed(f"{path or 'the home'} holds too much: watch a folder of it")
        if since_us is None:
            since_us = max((entry.changed_us for entry in found), default=0)
        return [entry for entry in found if entry.changed_us >= since_us]

    # -- the walk --------------------------------------------------------------------------

    @contextmanager
    def _file(self, path: str, flags: int) -> Iterator[int]:
        with self._parent(path) as (folder, name), _refused("read", path):
            file = os.open(name, flags | _OPEN, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise ActionFailed(f"{path} is not a file")
                yield file
            finally:
                os.close(file)

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        with self._parent(path) as (folder, name), _refused("list", path):
            file = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _OPEN, dir_fd=folder)
            try:
                yield file
            finally:
                os.close(file)

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the folder that `path` is in, and its name there: not a link."""
        with _refused("reach", path):
            folders = [os.open(self._root, _FOLDER)]
        try:
            with _refused("reach", path):
                name = self._walk(path, folders, make)
            yield folders[-1], name
        finally:
            for folder in folders:
                os.close(folder)

    def _walk(self, path: str, folders: list[int], make: bool) -> str:
        if "\0" in path or len(path) > 4096:
            raise ActionFailed("a path has at most 4096 characters, and no NUL")
        outside = ActionFailed(f"{path} is outside the home folder")
        words, links = deque(self._words(path, outside)), 0
        while words:
            word = words.popleft()
            if word == "..":
                if len(folders) == 1:
                    raise outside
                os.close(folders.pop())
                continue
            if (target := _link(word, folders[-1])) is not None:
                links += 1
                if links > _MAX_LINKS:
                    raise ActionFailed(f"{path} has more than {_MAX_LINKS} links in it")
                if target.startswith("/"):
                    while len(folders) > 1:
                        os.close(folders.pop())
                words.extendleft(reversed(self._words(target, outside)))
                continue
            if not words:
                return word
            if make:
                try:
                    os.mkdir(word, 0o755, dir_fd=folders[-1])
                except FileExistsError:
                    pass
            folders.append(os.open(word, _FOLDER, dir_fd=folders[-1]))
        return "."

    def _words(self, path: str, outside: ActionFailed) -> list[str]:
        """Return the parts of `path` from the home on; an absolute one must lie inside it."""
        if path.startswith("/"):
            for root in (os.fspath(self._root), os.path.realpath(self._root)):
                if f"{path}/".startswith(f"{root}/"):
                    path = path[len(root) :]
                    break
            else:
                raise outside
        return [word for word in path.removeprefix("~/").split("/") if word not in ("", ".")]


def _link(name: str, folder: int) -> str | None:
    """Return where a link points, None if `name` is none or does not exist."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def _relative(path: str) -> str:
    words = [word for word in path.removeprefix("~").split("/") if word not in ("", ".")]
    return "".join(f"{word}/" for word in words)


def _entries(folder: int, prefix: str) -> Iterator[Entry]:
    with os.scandir(folder) as found:
        for item in found:
            try:
                about = item.stat(follow_symlinks=False)
            except OSError:  # gone meanwhile
                continue
            # A name that is no UTF-8 is shown, but nothing can be asked about it.
            shown = os.fsencode(item.name).decode(errors="replace")
            yield Entry(
                path=prefix + shown,
                folder=stat.S_ISDIR(about.st_mode),
                size=about.st_size,
                modified_at=about.st_mtime,
                changed_us=max(about.st_ctime_ns, 0) // 1000,
            )


def _tree(folder: int, prefix: str, depth: int) -> Iterator[Entry]:
    for entry in _entries(folder, prefix):
        yield entry
        if entry.folder and depth > 0:
            name = entry.path.removeprefix(prefix)
            try:
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _OPEN, dir_fd=folder)
            except OSError:  # gone, or not ours to read
                continue
            try:
                yield from _tree(below, f"{entry.path}/", depth - 1)
            finally:
                os.close(below)


@contextmanager
def _refused(verb: str, path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise NotFound(f"no file {path}") from None
    except OSError as error:
        raise ActionFailed(f"can't {verb} {path}: {error.strerror}") from error
