"""Supervised fine-tuning: `python -m training.trainers.sft RUN_DIR [--dry-run]`.

Read top to bottom: configuration, rows, model, batches, loss, checkpoints, loop. Only the target
(thought and action) gets loss, as the mean over all target tokens of an optimiser step, however the
step is split into micro-batches. A text model and a vision-language model take the same path.

Config keys beside training.presets (epochs, steps, batch_size, learning_rate, warmup_steps,
weight_decay, max_grad_norm, lora_rank, max_tokens, save_every, seed, dtype): `base` (what
agent.serving.checkpoint.find takes), `version` (names the checkpoints), `micro_batch` (rows per
forward pass, 0: all), `blobs` (folder with blobs/<sha[:2]>/<sha>, for rows with pictures),
`threads` (0: torch decides).

A run resumes where its newest checkpoint stands and then gives the same bits as a run that was
never stopped (on a CPU, with the same number of threads and processes).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # weights come from a folder or a store, never a hub

import torch
import torch.nn.functional as F
from accelerate import Accelerator

from agent.serving.checkpoint import Loaded, find, load
from agent.serving.manifest import CheckpointError, Manifest, read_json, write_manifest
from agent.serving.processor import Encoded, PromptError
from training.algos.schedule import cosine
from training.rundir import RunDir, RunDirError, Status
from training.trainers.masters import Masters

IGNORE = -100


# -- configuration -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """What a run is trained with; see training.presets for what the fields mean."""

    base: str
    version: str = ""
    epochs: float = 3.0
    steps: int = 0
    batch_size: int = 8
    micro_batch: int = 0
    learning_rate: float = 2e-4
    warmup_steps: int = 10
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    lora_rank: int = 16
    max_tokens: int = 2048
    save_every: int = 50
    seed: int = 0
    dtype: str = "float32"
    blobs: str = ""
    threads: int = 0

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Config:
        """Return the configuration; keys that only others need are left alone."""
        names = {field.name for field in dataclasses.fields(cls)}
        if "base" not in record:
            raise RunDirError("config.json has no base: which weights are to be trained?")
        return cls(**{key: value for key, value in record.items() if key in names})


# -- rows --------------------------------------------------------------------------------------


class BrokenRow(ValueError):
    """A row can't be trained on; the message begins with its id."""


@dataclasses.dataclass(slots=True)
class Row:
    """One encoded row; the pixels of a row with pictures are made again when it is used."""

    id: str
    record: Mapping[str, Any]
    prompt: Encoded
    target: list[int]
    weight: float

    @property
    def length(self) -> int:
        return len(self.prompt.ids) + len(self.target)


def encode(record: Mapping[str, Any], loaded: Loaded, config: Config) -> Row:
    """Turn a row into tokens; raises BrokenRow."""
    name = str(record.get("id"))
    messages, target = record.get("messages"), record.get("target")
    if not isinstance(messages, list) or not messages:
        raise BrokenRow(f"row {name}: messages must be a list that is not empty")
    if not isinstance(target, str) or not target.strip():
        raise BrokenRow(f"row {name}: target must be a text that is not empty")

    def picture(part: Mapping[str, Any]) -> Any:
        from PIL import Image

        sha = str(part.get("sha256", ""))
        path = Path(config.blobs) / "blobs" / sha[:2] / sha
        try:
            with Image.open(path) as image:
                return image.convert("RGB")
        except OSError as error:
            raise BrokenRow(f"row {name}: picture {sha or '?'}: {error}") from error

    try:
        prompt = loaded.processor.prompt(messages, picture)
    except PromptError as error:
        raise BrokenRow(f"row {name}: {error}") from error
    return Row(
        name, record, prompt, loaded.processor.target_ids(target), float(record.get("weight", 1.0))
    )


def read_rows(run: RunDir, loaded: Loaded, config: Config) -> list[Row]:
    """Encode every row before the first step; the first broken one stops the run by its id.

    Rows without loss are skipped; rows longer than `max_tokens` are named and left out.
    """
    rows = []
    for record in run.rows():
        if not record.get("loss", True):
            continue
        row = encode(record, loaded, config)
        if row.length > config.max_tokens:
            print(f"row {row.id}: {row.length} tokens, more than {config.max_tokens}: left out")
            continue
        if row.prompt.extra:
            row.prompt = Encoded(row.prompt.ids)  # pixels would fill the memory
        rows.append(row)
    if not rows:
        raise BrokenRow(f"{run.data} has no row to train on")
    return rows


# -- model -------------------------------------------------------------------------------------


def open_model(config: Config) -> tuple[Loaded, Manifest]:
    """Load the base for training; returns it and the manifest of its checkpoints.

    A LoRA checkpoint is continued as it is (its rank stays); `lora_rank` 0 trains all weights, with
    an adapter of the base merged in. Under bfloat16 the whole model computes in it, which is three
    times as fast on a CPU as fp32 and twice as fast as autocast; `Masters` keeps fp32 weights.
    """
    torch.manual_seed(config.seed)
    files = find(config.base)
    if config.lora_rank == 0:
        # trainable=False merges an adapter; all weights get gradients again below.
        loaded = load(config.base, trainable=False)
        loaded.model.requires_grad_(True)
        manifest = dataclasses.replace(files.manifest, kind="full", base=None)
    else:
        loaded = load(config.base, trainable=True)
        if files.adapter is None:
            from peft import LoraConfig, get_peft_model

            lora = LoraConfig(
                r=config.lora_rank, lora_alpha=2 * config.lora_rank, lora_dropout=0.0,
                target_modules="all-linear", bias="none",
            )  # fmt: skip
            loaded.model = get_peft_model(loaded.model, lora)
            manifest = dataclasses.replace(files.manifest, kind="lora", base=config.base)
        else:
            manifest = files.manifest
    loaded.model.config.use_cache = False
    loaded.model.train()
    # A slice of the hidden states times the head would copy the head once per row of the batch.
    loaded.model.get_output_embeddings().register_forward_pre_hook(
        lambda module, inputs: (inputs[0].contiguous(), *inputs[1:])
    )
    return loaded, manifest


# -- batches -----------------------------------------------------------------------------------


def batches(rows: Sequence[Row], config: Config, epoch: int) -> list[list[int]]:
    """Return the batches of one epoch as row numbers: a function of the seed and the epoch alone.

    Rows are shuffled, then sorted by length within windows of 8 batches, so that a batch holds rows
    of like length; then the batches are shuffled. The last one may be short.
    """
    rng = random.Random(f"{config.seed}/{epoch}")
    order = list(range(len(rows)))
    rng.shuffle(order)
    window = config.batch_size * 8
    result = []
    for start in range(0, len(order), window):
        part = sorted(order[start : start + window], key=lambda n: (rows[n].length, n))
        result += [part[n : n + config.batch_size] for n in range(0, len(part), config.batch_size)]
    rng.shuffle(result)
    return result


def total_steps(rows: Sequence[Row], config: Config) -> int:
    per_epoch = math.ceil(len(rows) / config.batch_size)
    return config.steps or max(1, round(config.epochs * per_epoch))


def plan(rows: Sequence[Row], config: Config, first: int) -> Iterator[list[int]]:
    """Yield the batch of every step from `first` (0-based) on, epoch after epoch."""
    per_epoch = math.ceil(len(rows) / config.batch_size)
    epoch, skip = divmod(first, per_epoch)
    while True:
        yield from batches(rows, config, epoch)[skip:]
        epoch, skip = epoch + 1, 0


def collate(rows: Sequence[Row], loaded: Loaded, config: Config) -> dict[str, torch.Tensor]:
    """Pad rows on the left, so that all targets end in the last column.

    Returns input_ids, attention_mask (n, t), labels (n, t; IGNORE outside the targets), weights (n)
    and what pictures add.
    """
    length = max(row.length for row in rows)
    ids = torch.full((len(rows), length), loaded.processor.pad_id)
    mask = torch.zeros((len(rows), length), dtype=torch.long)
    labels = torch.full((len(rows), length), IGNORE)
    kinds = torch.zeros((len(rows), length), dtype=torch.long)
    extras: list[dict[str, torch.Tensor]] = []
    for n, row in enumerate(rows):
        ids[n, -row.length :] = torch.tensor(row.prompt.ids + row.target)
        mask[n, -row.length :] = 1
        labels[n, -len(row.target) :] = torch.tensor(row.target)
        if row.record.get("images"):
            extra = encode(row.record, loaded, config).prompt.extra
            span = extra.pop("mm_token_type_ids")[0]
            kinds[n, length - row.length : length - len(row.target)] = span
            extras.append(extra)
    batch = {
        "input_ids": ids, "attention_mask": mask, "labels": labels,
        "weights": torch.tensor([row.weight for row in rows]),
    }  # fmt: skip
    if extras:
        batch["mm_token_type_ids"] = kinds
        for key in extras[0]:
            batch[key] = torch.cat([extra[key] for extra in extras])
    return batch


# -- loss --------------------------------------------------------------------------------------


def summed_loss(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the weighted sum of the cross-entropy (nats) over the batch's target tokens.

    Logits are computed only where a target stands: the head is a fifth of a small model.
    """
    labels, weights = batch.pop("labels"), batch.pop("weights")
    keep = int((labels != IGNORE).sum(1).max()) + 1  # one more: a token is said by the one before
    if "pixel_values" not in batch:
        batch["position_ids"] = (batch["attention_mask"].cumsum(1) - 1).clamp(min=0)
    logits = model(**batch, logits_to_keep=keep).logits[:, :-1].float()
    target = labels[:, -(keep - 1) :]
    losses = F.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), target.reshape(-1), ignore_index=IGNORE,
        reduction="none",
    )  # fmt: skip
    return (losses.view(target.shape) * weights[:, None]).sum()


# -- checkpoints -------------------------------------------------------------------------------


def state_path(run: RunDir, step: int) -> Path:
    """Where the trainer's own state of a step lies: apart from the checkpoint, which travels."""
    return run.path / "state" / f"step-{step}.pt"


def save(
    run: RunDir,
    step: int,
    total: int,
    model: Any,
    masters: Masters,
    optimiser: Any,
    manifest: Manifest,
    config: Config,
) -> None:
    """Write the checkpoint of a step, whole or not at all; only the last two states are kept."""
    state = state_path(run, step)
    state.parent.mkdir(exist_ok=True)
    aside = state.with_suffix(".unfinished")
    torch.save(
        {
            "step": step,
            "total_steps": total,
            "weights": masters.state(),
            "optimiser": optimiser.state_dict(),
            "torch_rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        },
        aside,
    )
    os.replace(aside, state)
    folder = run.checkpoint(step)
    if not folder.exists():
        partial = folder.with_name(f".{folder.name}.unfinished")
        shutil.rmtree(partial, ignore_errors=True)
        model.save_pretrained(partial)
        if manifest.kind == "lora":
            name_base(partial, str(manifest.base))
        if manifest.kind == "full":
            for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                         "generation_config.json", "preprocessor_config.json"):  # fmt: skip
                if (source := find(config.base).weights / name).exists():
                    shutil.copy(source, partial / name)
        version = f"{config.version or run.path.name}-step-{step}"
        write_manifest(partial, dataclasses.replace(manifest, version=version))
        os.replace(partial, folder)
    for old in sorted(state.parent.glob("step-*.pt"), key=lambda p: p.stat().st_mtime)[:-2]:
        old.unlink()


def name_base(folder: Path, base: str) -> None:
    """Name the base as the manifest does: peft writes a path of this machine, and an empty README."""
    path = folder / "adapter_config.json"
    settings = {**read_json(path), "base_model_name_or_path": base}
    path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    (folder / "README.md").unlink(missing_ok=True)


def resume(run: RunDir, masters: Masters, optimiser: Any) -> int:
    """Restore the newest checkpoint that has its state; returns its step, 0 for a fresh start."""
    for step in reversed(run.steps()):
        if not state_path(run, step).exists():
            continue
        state = torch.load(state_path(run, step), weights_only=True)
        masters.restore(state["weights"])
        optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["torch_rng"])
        if state["cuda_rng"]:
            torch.cuda.set_rng_state_all(state["cuda_rng"])
        print(f"resumed at step {step}")
        return step
    return 0


# -- the loop ----------------------------------------------------------------------------------


def train(run: RunDir, config: Config, stop: list[int]) -> Status:
    """Train to the end, or until `stop` is not empty; returns what became of it."""
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    loaded, manifest = open_model(config)
    rows = read_rows(run, loaded, config)
    total = total_steps(rows, config)
    loaded.model.to(accelerator.device)
    masters = Masters(loaded.model, getattr(torch, config.dtype))
    count = sum(p.numel() for p in masters.full)
    print(f"{len(rows)} rows, {total} steps, {count:,} weights trained")
    optimiser = torch.optim.AdamW(
        masters.full, lr=config.learning_rate, weight_decay=config.weight_decay
    )
    first = resume(run, masters, optimiser)
    model = accelerator.prepare_model(loaded.model)
    main, world, rank = (
        accelerator.is_main_process, accelerator.num_processes, accelerator.process_index,
    )  # fmt: skip
    if main:
        run.cut_metrics(first)
        run.write_status(Status("running", first, total, os.getpid()))

    def keep(step: int) -> None:
        save(
            run, step, total, accelerator.unwrap_model(model), masters, optimiser, manifest, config
        )

    begun, saved, step, halted = time.monotonic(), first, first, False
    for numbers in plan(rows, config, first):
        if step >= total or halted:
            break
        step += 1
        started = time.monotonic()
        mine = numbers[rank::world] or numbers[:1]
        share = 1.0 if numbers[rank::world] else 0.0  # a short last batch may leave ranks without
        size = config.micro_batch or len(mine)
        micro = [[rows[n] for n in mine[at : at + size]] for at in range(0, len(mine), size)]
        # The mean is over the target tokens of the whole step, on every process alike.
        tokens = sum(len(rows[n].target) * rows[n].weight for n in numbers)
        rate = cosine(step, total, warmup=config.warmup_steps, height=config.learning_rate)
        for group in optimiser.param_groups:
            group["lr"] = rate
        loss = torch.zeros((), device=accelerator.device)
        for at, part in enumerate(micro):
            batch = {
                key: value.to(accelerator.device)
                for key, value in collate(part, loaded, config).items()
            }
            last = at == len(micro) - 1
            with contextlib.nullcontext() if last else accelerator.no_sync(model):
                piece = share * summed_loss(model, batch) / tokens
                accelerator.backward(piece * world)  # gradients are averaged over processes
            loss += piece.detach()
        masters.take_gradients()
        norm = torch.nn.utils.clip_grad_norm_(masters.full, config.max_grad_norm or math.inf)
        optimiser.step()
        optimiser.zero_grad()
        masters.give_weights()
        # All processes stop at the same step, whichever of them was told to.
        word = torch.stack([loss, torch.tensor(float(len(stop)), device=loss.device)])
        value, told = accelerator.reduce(word, "sum").tolist()
        halted = told > 0
        if not math.isfinite(value):
            raise FloatingPointError(f"the loss of step {step} is {value}: lower the learning rate")
        now = time.monotonic()
        if main:
            run.append_metrics({
                "step": step, "loss": round(value, 6), "lr": rate,
                "grad_norm": round(float(norm), 6),
                "tokens_per_s": round(sum(rows[n].length for n in numbers) / (now - started), 1),
                "eta_s": round((now - begun) / (step - first) * (total - step), 1),
                "time": time.time(),
            })  # fmt: skip
            if (config.save_every and step % config.save_every == 0) or step == total:
                keep(step)
                saved = step
            newest = f"checkpoints/step-{saved}" if saved else ""
            run.write_status(Status("running", step, total, os.getpid(), checkpoint=newest))
    if main and step > saved:
        keep(step)
        saved = step
    newest = f"checkpoints/step-{saved}" if saved else ""
    return Status("succeeded" if step >= total else "cancelled", step, total, checkpoint=newest)


def show(run: RunDir, config: Config) -> None:
    """Print the first row as the model reads it: grey gets no loss, green does."""
    loaded, _ = open_model(config)
    rows = read_rows(run, loaded, config)
    row = rows[0]
    decode = loaded.processor.tokenizer.decode
    prompt = decode(row.prompt.ids, skip_special_tokens=False)
    target = decode(row.target, skip_special_tokens=False)
    print(f"row {row.id}: {len(row.prompt.ids)} tokens without loss, {len(row.target)} with")
    print(f"\033[90m{prompt}\033[0m\033[32m{target}\033[0m")
    longest = max(rows, key=lambda r: r.length)
    print(f"{len(rows)} rows, {total_steps(rows, config)} steps, longest {longest.length} tokens")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m training.trainers.sft")
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--dry-run", action="store_true", help="print one row with its loss mask")
    options = parser.parse_args(argv)
    run = RunDir(options.run_dir)
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))
    signal.signal(signal.SIGINT, lambda number, frame: stop.append(number))
    leads = os.environ.get("RANK", "0") == "0"
    try:
        config = Config.read(run.config())
        if config.threads:
            torch.set_num_threads(config.threads)
        if options.dry_run:
            show(run, config)
            return 0
        status = train(run, config, stop)
    except (BrokenRow, RunDirError, CheckpointError) as error:
        print(error, file=sys.stderr)
        if leads and not options.dry_run:
            run.write_status(Status("failed", error=str(error)))
        return 1
    except Exception as error:  # the status file is how a supervisor learns of it
        traceback.print_exc()
        if leads and not options.dry_run:
            run.write_status(Status("failed", error=f"{type(error).__name__}: {error}"))
        return 1
    if leads:
        run.write_status(status)
    print(f"{status.state} at step {status.step} of {status.total_steps}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
