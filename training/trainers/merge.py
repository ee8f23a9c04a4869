"""Merge specialists: `python -m training.trainers.merge RUN_DIR [--dry-run]`.

theta = sum of alpha_k theta_k, alpha on the simplex, over models from the same SFT start (UI-TARS-2,
arXiv 2509.02544; linear mode connectivity, arXiv 1912.05671). The result has full weights, also where
the sources are adapters: the sum of two low-rank products is no product of sums.

It takes no optimiser step: one step, one checkpoint. `spread` in its metrics is how far the sources lie
from their mean, relative to its length: sqrt(sum of alpha_k |theta_k - theta|^2) / |theta|.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from agent.serving.checkpoint import Files, find
from agent.serving.manifest import Manifest, read_json, write_manifest
from training.algos.merge import MergeError, check_weights, merge
from training.runs.rundir import RunDir, RunDirError, Status
from training.trainers import weights
from training.trainers.job import Refused, Stop, main
from training.trainers.learner import carry
from training.trainers.settings import Settings

SPOKEN = ("dialect", "observation", "coordinates", "role")


@dataclasses.dataclass(frozen=True, slots=True)
class Config(Settings):
    """What is merged: `sources` are {"uri", "version", "weight"}; `dtype` is that of the result."""

    sources: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Config:
        sources = record.get("sources") or []
        if len(sources) < 2:
            raise RunDirError("config.yaml names fewer than two sources: there is nothing to merge")
        names = {field.name for field in dataclasses.fields(cls)}
        known = {key: value for key, value in record.items() if key in names}
        return cls(**{**known, "base": sources[0]["uri"]})


def open_sources(config: Config) -> list[Files]:
    """Return the files of every source; raises Refused where two of them don't fit together."""
    found = [find(source["uri"]) for source in config.sources]
    first = found[0]
    for files, source in zip(found[1:], config.sources[1:], strict=True):
        name, other = source.get("version") or source["uri"], config.sources[0].get("version")
        for field in SPOKEN:
            mine, theirs = getattr(files.manifest, field), getattr(first.manifest, field)
            if mine != theirs:
                raise Refused(f"{name} has {field} {mine}, {other or 'the first'} {theirs}")
        if _tokenizer(files) != _tokenizer(first):
            raise Refused(f"{name} has another tokenizer than {other or 'the first'}")
        if what := _unlike(files, first):
            raise Refused(f"{name} has another {what} than {other or 'the first'}")
    return found


def train(run: RunDir, config: Config, stop: Stop) -> Status:
    """Merge, and write the one checkpoint; stopped on the way, it leaves nothing."""
    shares = [float(source["weight"]) for source in config.sources]
    done = Status("succeeded", 1, 1, checkpoint="checkpoints/step-1")
    folder = run.checkpoint(1)
    if folder.exists():
        return done  # killed before it could say so
    files = open_sources(config)
    began = time.monotonic()
    run.cut_metrics(0)
    run.write_status(Status("running", 0, 1, os.getpid()))
    partial = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    apart = length = 0.0

    def merged() -> Iterator[tuple[str, Tensor]]:
        nonlocal apart, length
        sources = [weights.Weights(source) for source in files]
        for done, (name, tensor) in enumerate(merge(sources, shares), start=1):
            if stop.asked:
                raise InterruptedError
            distance, norm = weights.spread(tensor, [source[name] for source in sources], shares)
            apart, length = apart + distance, length + norm
            if done % 50 == 0:
                run.write_status(Status("running", 0, 1, os.getpid()))
            yield name, tensor.to(getattr(torch, config.dtype))

    try:
        weights.save(merged(), partial)
    except InterruptedError:
        shutil.rmtree(partial)
        return Status("cancelled", 0, 1)
    except MergeError as error:
        raise Refused(str(error)) from error
    settings = read_json(files[0].weights / "config.json") | {"dtype": config.dtype}
    (partial / "config.json").write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")
    carry(files[0].weights, partial)
    version = f"{config.version or run.path.name}-step-1"
    write_manifest(partial, _manifest(files[0].manifest, version))
    spread = math.sqrt(apart) / math.sqrt(length) if length else 0.0
    took = round(time.monotonic() - began, 2)
    run.append_metrics({"step": 1, "spread": spread, "seconds": took, "time": time.time()})
    os.replace(partial, folder)
    return done


def show(run: RunDir, config: Config) -> None:
    """Print what would be merged, after all checks."""
    check_weights([float(source["weight"]) for source in config.sources], len(config.sources))
    files = open_sources(config)
    for source, found in zip(config.sources, files, strict=True):
        kind = "adapter" if found.adapter else "full weights"
        print(f"{source['weight']:.3f}  {source.get('version') or source['uri']} ({kind})")
    print(f"{len(weights.Weights(files[0]))} tensors")


def _manifest(first: Manifest, version: str) -> Manifest:
    return dataclasses.replace(first, kind="full", base=None, version=version)


def _tokenizer(files: Files) -> str:
    return hashlib.sha256((files.weights / "tokenizer.json").read_bytes()).hexdigest()


def _unlike(one: Files, other: Files) -> str:
    """Return a setting of the architecture in which two models differ, "" where there is none.

    What only one of them states is a default that the other's writer left out.
    """
    told = ("dtype", "transformers_version", "_name_or_path", "use_cache")
    first, second = (read_json(files.weights / "config.json") for files in (one, other))
    both = [key for key in sorted(first) if key in second and key not in told]
    return next((key for key in both if first[key] != second[key]), "")


if __name__ == "__main__":
    raise SystemExit(main("merge", Config, train, show))
