"""Reading a growing file of JSON lines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class JsonLines:
    """What was added to a file since the last look; a line that is still being written waits.

    A file that no longer holds the line read last (a resumed trainer cut it, and may have added to
    it since) is read again from its beginning.
    """

    path: Path
    offset: int = 0
    last: bytes = b""

    def read(self) -> list[dict[str, Any]]:
        """Return the new whole lines; the last of several with the same step only.

        A number that is none (NaN, Infinity) is None: PostgreSQL's JSON has no word for it.
        """
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset - len(self.last))
                if file.read(len(self.last)) != self.last:
                    self.offset, self.last = 0, b""
                    file.seek(0)
                body = file.read()
        except FileNotFoundError:
            return []
        body = body[: body.rfind(b"\n") + 1]
        self.offset += len(body)
        self.last = body.splitlines(keepends=True)[-1] if body else self.last
        lines = [
            json.loads(line, parse_constant=lambda _: None)
            for line in body.splitlines()
            if line.strip()
        ]
        return list({line["step"]: line for line in lines}.values())
