"""What a game says of itself in its `game.json`, and where its files are.

A game is a folder below `sandbox/games` or `sandbox/games/third_party`, called like the game with
underscores. It holds:

* `game.json`: the fields of Game without `folder` and `settings`; the defaulted ones may be left out.
* the page named by `entry`. It publishes one global, `window.tandemGame`:
  `start(seed, settings)` begins the episode of `seed` whatever was played before and returns true;
  `state()` gives everything that decides the game as JSON, the same for the same seed;
  `places()` gives {name: [x, y]}, the middle of each thing that can be pointed at, in page pixels.
* `verify.js`: one function expression without a semicolon behind it. It gets `state()` and gives
  {score, level, lives, done, won}; `level` and `lives` may be null. It changes nothing.
* `oracle.py`: `decide(look)`, a function of the state alone (see `sandbox.games.player`).
* for third-party games also the licence, in a file beside them, and where they come from.

A page loads nothing from a network and never draws an unseeded random number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from sandbox.families.protocol import Split, checksum
from sandbox.provider import SandboxError

FOLDER = Path(__file__).resolve().parent
COMMON = FOLDER / "common"
_NOT_PLAYED = {".py", ".pyc", ".md"}
_NUMBERS = {"width", "height", "max_steps", "tick_ms", "reference"}


class BadManifest(SandboxError):
    """A `game.json` can't be used; the message names the file and the field."""


@dataclass(frozen=True, slots=True)
class Game:
    """One game's manifest.

    `scoring` is "won" (the reward is 1 for a won game and 0 otherwise) or "score" (the reward is the
    score divided by `reference`, at most 1). `reference_from` says whose the reference is ("script"
    for the scripted player, "rules" for the most that the rules give) and `reference_how` how it was
    measured: by whom, over which seeds. `easy` are settings of the page for an easier game, which is
    listed as `name`-easy; `settings` are those of this one. `tick_ms` is the virtual time that one action takes in a
    timed game. `reload` is for pages that can't start anew: they are opened at `entry?seed=N`.
    """

    name: str
    title: str
    instruction: str
    controls: str
    scored: str
    version: str
    licence: str
    max_steps: int
    scoring: str
    folder: Path
    entry: str = "index.html"
    width: int = 480
    height: int = 640
    reference: float = 0.0
    reference_from: str = ""
    reference_how: str = ""
    timed: bool = False
    tick_ms: int = 0
    reload: bool = False
    split: Split = "train"
    tags: tuple[str, ...] = ()
    easy: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, int] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return (self.folder / self.entry).as_uri()

    @property
    def text(self) -> str:
        """What the player is told: what to do, how, and what counts."""
        return f"{self.title}. {self.instruction} Controls: {self.controls} Scoring: {self.scored}"

    @property
    def verifier(self) -> str:
        return (self.folder / "verify.js").read_text(encoding="utf-8")

    @property
    def module(self) -> str:
        """Where the oracle is."""
        return ".".join(("sandbox.games", *self.folder.relative_to(FOLDER).parts, "oracle"))

    def checksum(self) -> str:
        """Return one sha256 over all files that the outcome depends on, names included."""
        files = [
            path
            for root in (self.folder, COMMON)
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.suffix not in _NOT_PLAYED
        ]
        parts = [(path.relative_to(FOLDER).as_posix(), path.read_bytes()) for path in files]
        return checksum(*(part for pair in parts for part in pair), dict(self.settings))


@cache
def games() -> tuple[Game, ...]:
    """Return every game, by name; raises BadManifest."""
    written = [read(path) for path in FOLDER.glob("**/game.json")]
    easy = [
        replace(game, name=f"{game.name}-easy", settings=game.easy, tags=(*game.tags, "easy"))
        for game in written
        if game.easy
    ]
    found = sorted(written + easy, key=lambda game: game.name)
    for one, two in pairwise(found):
        if one.name == two.name:
            raise BadManifest(f"two games are called {one.name!r}: {one.folder}, {two.folder}")
    return tuple(found)


def read(path: Path) -> Game:
    """Return the game of one `game.json`; raises BadManifest."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadManifest(f"{path}: not JSON: {error}") from error
    known = {f.name: f for f in fields(Game) if f.name not in ("folder", "settings")}
    unknown = sorted(set(record) - set(known))
    needed = {n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING}
    missing = sorted(needed - set(record))
    if unknown or missing:
        raise BadManifest(f"{path}: unknown fields {unknown}, missing fields {missing}")
    wrong = [name for name in _NUMBERS & set(record) if not isinstance(record[name], int | float)]
    if wrong:
        raise BadManifest(f"{path}: not a number: {sorted(wrong)}")
    game = Game(**{**record, "tags": tuple(record.get("tags", ()))}, folder=path.parent)
    _check(game, path)
    return game


def _check(game: Game, path: Path) -> None:
    if game.folder.name != game.name.replace("-", "_"):
        raise BadManifest(f"{path}: the folder of {game.name!r} must be called like it")
    if game.scoring not in ("won", "score"):
        raise BadManifest(f"{path}: scoring must be 'won' or 'score', not {game.scoring!r}")
    if game.scoring == "score" and (game.reference <= 0 or not game.reference_from):
        raise BadManifest(f"{path}: a score needs a reference above 0 and whose it is")
    if game.timed != (game.tick_ms > 0):
        raise BadManifest(
            f"{path}: tick_ms is the time of one action of a timed game, and only there"
        )
