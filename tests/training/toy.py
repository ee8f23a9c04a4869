"""A toy to learn on: a prompt names a letter, the right answer is that letter; no browser, no server.

`play` samples from a checkpoint as a policy server would, and returns what a stream would hold.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch
from PIL import Image

from agent.serving.checkpoint import Loaded, load
from training.data.stream_rows import TokenEpisode, TokenStep, append
from training.runs.rundir import RunDir
from training.trainers.rows import open_picture
from training.trainers.updates import Pool

LETTERS = "AB"


def sampled(
    loaded: Loaded, ids: torch.Tensor, rng: torch.Generator, *, tokens: int = 2
) -> tuple[list[list[int]], list[list[float]]]:
    """Sample `tokens` tokens after each prompt of `ids` (n, t); returns them and their log-probs."""
    said, sure, seen = [], [], ids
    with torch.no_grad():
        for _ in range(tokens):
            logs = loaded.model(seen).logits[:, -1].float().log_softmax(-1)
            token = torch.multinomial(logs.exp(), 1, generator=rng)
            said.append(token)
            sure.append(logs.gather(1, token))
            seen = torch.cat([seen, token], 1)
    return torch.cat(said, 1).tolist(), torch.cat(sure, 1).tolist()


def play(
    policy: Path | Loaded, count: int, *, seed: int, first: int = 1, version: str = "base",
    group: int = 1, steps: int = 2,
) -> list[TokenEpisode]:  # fmt: skip
    """Play `count` episodes of `steps` steps; the reward is 1 where every answer begins rightly."""
    loaded = policy if isinstance(policy, Loaded) else load(policy)
    rng, words = torch.Generator().manual_seed(seed), random.Random(seed)
    letters = [words.choice(LETTERS) for _ in range(-(-count // group)) for _ in range(group)]
    played: list[list[TokenStep]] = [[] for _ in range(count)]
    for n in range(steps):
        ids = [ids_of(loaded, f"{n}:say {letter}>") for letter in letters[:count]]
        said, sure = sampled(loaded, torch.tensor(ids), rng)
        for own, prompt, output, logprobs in zip(played, ids, said, sure, strict=True):
            own.append(TokenStep(prompt, output, logprobs, version))
    return [
        TokenEpisode(
            f"episode-{first + n}-1", first + n, first + n, f"toy/say#{seed}-{n // group}", "say",
            float(all(step.output_ids[:1] == ids_of(loaded, letter) for step in own)), "ended", 0, own,
        )
        for n, (letter, own) in enumerate(zip(letters, played, strict=False))
    ]  # fmt: skip


def uneven(loaded: Loaded, count: int, *, seed: int = 3) -> list[TokenEpisode]:
    """Return episodes of one to three steps, prompts and outputs of all lengths, rewards 0 and 1.

    Nobody has sampled them: the log-probabilities are what the model says of random tokens.
    """
    rng = random.Random(seed)
    made = []
    for n in range(count):
        steps = []
        for _ in range(rng.randint(1, 3)):
            prompt = [rng.randrange(256) for _ in range(rng.randint(3, 20))]
            output = [rng.randrange(256) for _ in range(rng.randint(1, 9))]
            with torch.no_grad():
                logs = loaded.model(torch.tensor([prompt + output])).logits[0].log_softmax(-1)
            sure = logs[len(prompt) - 1 : -1].gather(1, torch.tensor(output)[:, None])[:, 0]
            steps.append(
                TokenStep(prompt, output, sure.tolist(), "base", readable=rng.random() < 0.8)
            )
        made.append(
            TokenEpisode(f"e{n}", n, n + 1, f"g{n // 4}", "say", float(n % 2), "ended", 0, steps)
        )
    return made


def seeing(folder: Path, loaded: Loaded, count: int) -> list[TokenEpisode]:
    """Return episodes of a step with a picture and one without; blobs go below `folder`."""
    file = io.BytesIO()
    Image.new("RGB", (128, 96), "red").save(file, "PNG")
    sha = hashlib.sha256(file.getvalue()).hexdigest()
    place = folder / "blobs" / sha[:2] / sha
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(file.getvalue())
    rng = random.Random(1)
    made = []
    for n in range(count):
        content = [{"type": "image", "sha256": sha}, {"type": "text", "text": f"Click {n % 2}."}]
        messages = [{"role": "user", "content": content}]
        prompt = loaded.processor.prompt(messages, lambda part: open_picture(part, str(folder)))
        steps = [
            TokenStep(ids, [rng.randrange(256) for _ in range(3 + n % 2)], [-5.0] * (3 + n % 2),
                      "base", messages=said)
            for ids, said in ((prompt.ids, messages), (ids_of(loaded, "And now?"), None))
        ]  # fmt: skip
        made.append(
            TokenEpisode(f"e{n}", n, n + 1, f"g{n // 2}", "see", float(n % 2), "ended", 0, steps)
        )
    return made


def ids_of(loaded: Loaded, text: str) -> list[int]:
    return list(loaded.processor.tokenizer.encode(text, add_special_tokens=False).ids)


def metrics(run: RunDir) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]


def stream(
    path: Path, episodes: Sequence[TokenEpisode], *, end: bool = True, **config: object
) -> RunDir:
    """Make a run directory with these episodes in its stream."""
    run = RunDir.create(path, config=config)
    append(run.path, episodes, end=end)
    return run


def feed(monkeypatch: pytest.MonkeyPatch, run: RunDir, base: Path, **how: int) -> None:
    """Whenever the trainer finds nothing to learn from, play a batch with the weights it serves."""
    look, batch = Pool.look, int(run.config()["batch"])
    steps, group = how.get("steps", 2), how.get("group", 1)

    def played(pool: Pool) -> None:
        look(pool)
        if not pool.waiting:
            served = sorted(
                (run.path / "served").glob("step-*"), key=lambda p: int(p.name.split("-")[-1])
            )
            number = sum(1 for _ in (run.path / "stream.jsonl").open()) if served else 0
            version = f"{run.config()['version']}-{served[-1].name}" if served else "base"
            append(
                run.path,
                play(
                    served[-1] if served else base, batch, seed=number, first=number + 1,
                    version=version, steps=steps, group=group,
                ),
            )  # fmt: skip
            look(pool)

    monkeypatch.setattr(Pool, "look", played)


def speller(folder: Path, base: Path) -> Path:
    """Teach a tiny model to answer with some letter or other: where RL begins."""
    from training.trainers.learner import Learner, accelerator, open_model
    from training.trainers.settings import Settings

    settings = Settings(base=str(base), lora_rank=0, seed=0)
    loaded, manifest = open_model(settings)
    learner = Learner(loaded, manifest, settings, accelerator())
    rng = random.Random(0)
    for _ in range(40):
        prompts = [f"{rng.randrange(3)}:say {rng.choice(LETTERS)}>" for _ in range(32)]
        ids = torch.tensor([ids_of(loaded, prompt + rng.choice(LETTERS)) for prompt in prompts])
        logits = loaded.model(ids).logits[:, -2]
        torch.nn.functional.cross_entropy(logits, ids[:, -1]).backward()
        learner.step(3e-3)
    learner.write(folder, "speller")
    return folder


def rewarded(
    episodes: Sequence[TokenEpisode], letters: Mapping[str, float], loaded: Loaded
) -> list[TokenEpisode]:
    """Give each episode the reward of the letter that its first prompt names: V can be learnt."""
    import dataclasses

    return [
        dataclasses.replace(
            episode,
            reward=next(
                reward
                for letter, reward in letters.items()
                if f"say {letter}>" in loaded.processor.decode(episode.steps[0].prompt_ids)
            ),
        )
        for episode in episodes
    ]
