"""`python -m guest`: serve a display that runs already."""

from __future__ import annotations

import argparse
from pathlib import Path

from guest.computer import Computer
from guest.routes import DESKTOP
from guest.server import Server


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="guest", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--display", default=":0")
    parser.add_argument("--boot-id", required=True)
    options = parser.parse_args()
    computer = Computer(options.display, boot_id=options.boot_id)
    with Server(options.socket, computer, limits="unknown", routes=DESKTOP) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
