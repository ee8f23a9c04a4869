"""Reading a growing file of JSON lines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class JsonLines:
    """What was added to a file since the last look; a line that is still being written waits.

    A file that became shorter (a resumed trainer cut it) is read again from its beginning.
    """

    path: Path
    offset: int = 0

    def read(self) -> list[dict[str, Any]]:
        """Return the new whole lines; the last of several with the same step only."""
        try:
            with open(self.path, "rb") as file:
                if file.seek(0, 2) < self.offset:
                    self.offset = 0
                file.seek(self.offset)
                body = file.read()
        except FileNotFoundError:
            return []
        body = body[: body.rfind(b"\n") + 1]
        self.offset += len(body)
        lines = [json.loads(line) for line in body.splitlines() if line.strip()]
        return list({line["step"]: line for line in lines}.values())
