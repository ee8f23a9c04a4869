"""MCP tools behind the screen: the shell and the files, the same that the screen shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

if TYPE_CHECKING:
    from sandbox.mcp.server import Computer

MAX_OUTPUT = 64 * 1024
MAX_TEXT = 1024 * 1024
Path = Annotated[str, Field(min_length=1, max_length=4096)]


class FileTools:
    """Paths are relative to the computer's home folder."""

    def __init__(self, computer: Computer) -> None:
        self._computer = computer

    def tools(self) -> Sequence[Callable[..., Any]]:
        return self.shell, self.read_file, self.write_file

    def shell(
        self,
        command: Annotated[str, Field(min_length=1, max_length=64 * 1024)],
        timeout_s: Annotated[int, Field(ge=1, le=600)] = 30,
    ) -> str:
        """Run a command in the home folder and return what it said and its exit code."""
        result = self._computer.shell(command, timeout_ms=timeout_s * 1000)
        output = result.output
        if len(output) > MAX_OUTPUT:
            output = f"{output[:MAX_OUTPUT]}\n[cut: {len(result.output)} characters in all]"
        return f"{output}\n[exit code {result.exit_code}]"

    def read_file(self, path: Path) -> str:
        """Return a text file."""
        self._computer.check()
        data = self._computer.desktop.read_file(path)
        if len(data) > MAX_TEXT:
            raise ValueError(
                f"{path} has {len(data)} bytes; at most {MAX_TEXT} are read: use shell"
            )
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ValueError(
                f"{path} is no text: it has {len(data)} bytes of another kind"
            ) from None

    def write_file(self, path: Path, text: Annotated[str, Field(max_length=MAX_TEXT)]) -> str:
        """Write a text file, with the folders above it."""
        self._computer.check()
        self._computer.desktop.write_file(path, text.encode(), epoch=self._computer.epoch)
        return f"wrote {len(text.encode())} bytes to {path}"
