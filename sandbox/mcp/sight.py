"""MCP tools that look."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver import Image
from PIL import Image as Picture
from pydantic import Field

if TYPE_CHECKING:
    from sandbox.mcp.server import Computer

MAX_PICTURE = 16 * 1024 * 1024
MAX_ELEMENTS = 400
Pixel = Annotated[int, Field(ge=0, le=16_384)]


class SightTools:
    """`screenshot` waits until the screen stands still, at most two seconds."""

    def __init__(self, computer: Computer) -> None:
        self._computer = computer

    def tools(self) -> Sequence[Callable[..., Any]]:
        return self.screenshot, self.zoom, self.elements

    def screenshot(self) -> Image:
        """Show the screen as it is now, once it stands still."""
        return Image(data=self._png(), format="png")

    def zoom(self, left: Pixel, top: Pixel, right: Pixel, bottom: Pixel) -> Image:
        """Show one part of the screen larger: pixels of the screenshot, right and bottom excluded."""
        with Picture.open(io.BytesIO(self._png()), formats=["PNG"]) as picture:
            if not (left < right <= picture.width and top < bottom <= picture.height):
                raise ValueError(
                    f"({left}, {top}, {right}, {bottom}) is no part of a screen of "
                    f"{picture.width}x{picture.height}"
                )
            part = picture.crop((left, top, right, bottom)).convert("RGB")
            times = max(1, min(picture.width // part.width, picture.height // part.height))
            part = part.resize((part.width * times, part.height * times))
        out = io.BytesIO()
        part.save(out, "PNG")
        return Image(data=out.getvalue(), format="png")

    def elements(self) -> str:
        """List what can be named on the screen: role, name, box (left, top, width, height), value."""
        self._computer.check()
        found = self._computer.desktop.observe(elements=True).elements
        if not found:
            return "this computer names no elements now"
        lines = [
            f"{element.role} {element.name[:200]!r} {element.box}"
            + (f" = {element.value[:200]!r}" if element.value else "")
            for element in found[:MAX_ELEMENTS]
        ]
        left = len(found) - len(lines)
        return "\n".join([*lines, f"and {left} more"] if left else lines)

    def _png(self) -> bytes:
        self._computer.check()
        self._computer.desktop.settle()
        png = self._computer.desktop.observe().png
        if len(png) > MAX_PICTURE:
            raise ValueError(f"the computer sent a picture of {len(png)} bytes: too large")
        return png
