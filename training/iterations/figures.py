"""What the pages show of iterations: the loop with its phases, and a chain's numbers over t."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from django.urls import reverse
from django.utils import timezone

from training.evaluations.statistics import wilson
from training.iterations.phases import ORDER, PHASES
from training.models import Dataset, Evaluation, Iteration, Rollout, Run

WORDS: dict[str, tuple[str, str]] = {
    "deploy": ("Deploy M(t)", "A policy server of the iteration's own loads what is in force."),
    "collect": ("Collect", "M(t) plays every task on fresh seeds, several samples of each."),
    "baseline": ("Measure M(t)", "The fixed suite and seeds, to compare the candidate with."),
    "freeze": ("V(s)", "What succeeded goes to D_SFT(t+1), the rest to D_CT(t+1): nothing is wasted."),
    "ct": ("CT", "Continual pre-training on D_CT(t+1); rare."),
    "sft": ("SFT", "Supervised fine-tuning on D_SFT(t+1)."),
    "play": ("Play for the critic", "The policy that RL starts from plays; its critic learns from it."),
    "value": ("Critic", "Value pretraining, where no critic of this very policy is good enough."),
    "rl": ("RL", "PPO on the same tasks, with seeds of its own."),
    "evaluate": ("Measure candidate", "The same suite and seeds as M(t)."),
    "decide": ("Decide", "Promote the candidate only if it is better with confidence."),
}  # fmt: skip
"""Of each phase: what it is called, and what happens in it."""

WIDTH, HEIGHT, BOX = 800, 410, (144, 44)


def loop(row: Iteration) -> dict[str, Any]:
    """Return the picture of the loop: boxes on an ellipse, clockwise from the top, and its arrows."""
    names = list(PHASES)
    a, b = WIDTH / 2 - BOX[0] / 2 - 4, HEIGHT / 2 - BOX[1] / 2 - 4
    boxes = []
    for n, name in enumerate(names):
        angle = 2 * math.pi * n / len(names) - math.pi / 2
        x, y = WIDTH / 2 + a * math.cos(angle), HEIGHT / 2 + b * math.sin(angle)
        title, _ = WORDS[name]
        state = phase_state(row, name)
        boxes.append({
            "x": round(x - BOX[0] / 2, 1), "y": round(y - BOX[1] / 2, 1), "cx": round(x, 1),
            "title_y": round(y - 2, 1), "state_y": round(y + 14, 1), "name": name, "title": title,
            "state": state, "href": child_address(row, name),
        })  # fmt: skip
    arrows = []
    for n in range(len(names)):
        angle = 2 * math.pi * (n + 0.5) / len(names) - math.pi / 2
        x, y = WIDTH / 2 + a * math.cos(angle), HEIGHT / 2 + b * math.sin(angle)
        turn = math.degrees(math.atan2(b * math.cos(angle), -a * math.sin(angle)))
        arrows.append({"x": round(x, 1), "y": round(y, 1), "turn": round(turn)})
    return {
        "width": WIDTH, "height": HEIGHT, "box": BOX, "boxes": boxes, "arrows": arrows,
        "rx": round(a, 1), "ry": round(b, 1), "cx": WIDTH / 2, "cy": HEIGHT / 2,
    }  # fmt: skip


def phase_state(row: Iteration, name: str) -> str:
    """Return how a phase stands: waiting, running, paused, done, skipped, failed or cancelled."""
    state = str(row.phases.get(name, {}).get("state", "waiting"))
    if name == row.phase and state in ("waiting", "running", "again"):
        return row.state if row.state in ("paused", "cancelled", "failed") else "running"
    return "waiting" if state == "again" else state


def phases(row: Iteration) -> list[dict[str, Any]]:
    """Return every phase for the table: what it made, what it says, when, how long."""
    found = []
    for name in PHASES:
        record = row.phases.get(name, {})
        title, does = WORDS[name]
        begun, ended = _time(record.get("begun_at")), _time(record.get("ended_at"))
        last = ended or (row.finished_at if row.ended else timezone.now())
        waits = name == row.phase and not begun and row.server_since is not None
        note = record.get("note", "")
        if waits:
            note = f"waits for its policy server{': ' if row.server_trouble else ''}{row.server_trouble}"
        found.append({
            "name": name, "title": title, "does": does, "state": phase_state(row, name),
            "note": note, "begun": begun, "links": child_links(row, name),
            "seconds": (last - begun).total_seconds() if begun and last else None,
            "tries": record.get("tries", ()),
        })  # fmt: skip
    return found


def child_links(row: Iteration, name: str) -> list[tuple[str, str]]:
    """Return (address, words) of what a phase made."""
    if name == "freeze":
        made: list[Any] = [row.sft_dataset, row.ct_dataset]
    elif name == "decide":
        made = [row.candidate]
    elif name == "deploy":
        made = [row.policy]
    else:
        made = [getattr(row, PHASES[name].link)] if PHASES[name].link else []
    return [(address_of(one), str(getattr(one, "name", "") or one)) for one in made if one]


def child_address(row: Iteration, name: str) -> str:
    """Return the address of the page of what a phase made, "" where it made nothing yet."""
    links = child_links(row, name)
    return links[0][0] if links and name in row.phases else ""


def address_of(one: Any) -> str:
    """Return the page of a row."""
    pages = {Rollout: "rollout", Evaluation: "evaluation", Dataset: "dataset", Run: "run"}
    return reverse(f"training:{pages.get(type(one), 'checkpoint')}", args=[one.pk])


def numbers(row: Iteration) -> dict[str, Any]:
    """Return an iteration's figures: success before and after, the share of V(s) = 1, sizes."""
    collected = row.phases.get("collect", {}).get("figures", {})
    judged = collected.get("judged", 0)
    share = wilson(collected.get("solved", 0), judged) if judged else None
    gain = row.decision.get("difference")
    return {
        "before": row.phases.get("baseline", {}).get("figures", {}).get("success"),
        "after": row.phases.get("evaluate", {}).get("figures", {}).get("success"),
        "gain": f"{100 * gain['value']:+.1f} points" if gain else "",
        "gain_interval": f"{100 * gain['low']:+.1f} to {100 * gain['high']:+.1f}" if gain else "",
        "share": share.as_dict() if share else None,
        "judged": judged,
        "sft": row.sft_dataset.trajectories if row.sft_dataset else 0,
        "ct": row.ct_dataset.trajectories if row.ct_dataset else 0,
        "frozen": "freeze" in row.phases,
        "verdict": row.decision.get("verdict", ""),
        "phase": WORDS[row.phase][0] if row.phase in WORDS else "",
        "done": sum(r.get("state") in ("done", "skipped") for r in row.phases.values()),
        "of": len(ORDER) - 1,
    }


def chain_of(row: Iteration) -> list[Iteration]:
    """Return the iterations that follow one another from the first one, `row` among them."""
    rows = Iteration.objects.select_related(
        "sft_dataset", "ct_dataset", "policy", "candidate", "deployment"
    )
    here = row
    while here.previous_id is not None:
        here = rows.get(pk=here.previous_id)
    chain = [here]
    while (following := rows.filter(previous=chain[-1]).first()) is not None:
        chain.append(following)
    return chain


LINES = (
    ("before", "M(t)", "Success of what is in force, on the fixed suite"),
    ("after", "candidate", "Success of what the iteration trained, on the same"),
    ("share", "V(s) = 1", "Share of the collected episodes that succeed"),
)
PLOT = {"width": 1060, "height": 240, "left": 44, "right": 20, "top": 12, "bottom": 30}
"""The sizes of the plot in its own units."""


def plot(chain: list[Iteration]) -> dict[str, Any] | None:
    """Return a plot over a chain: rates with their intervals, at each iteration; None without any."""
    wide = PLOT["width"] - PLOT["left"] - PLOT["right"]
    tall = PLOT["height"] - PLOT["top"] - PLOT["bottom"]

    def height(rate: float) -> float:
        return round(PLOT["top"] + tall * (1 - rate), 1)

    rows = [(row, numbers(row)) for row in chain]
    ticks: list[dict[str, Any]] = [
        {"x": round(PLOT["left"] + wide * (n + 0.5) / len(rows), 1), "row": row}
        for n, (row, _) in enumerate(rows)
    ]
    lines = []
    for at, (name, label, says) in enumerate(LINES):
        points = [
            {
                # Beside each other, so that the intervals can be told apart.
                "x": round(tick["x"] + 7 * (at - 1), 1), "y": height(found[name]["value"]),
                "low": height(found[name]["low"]), "high": height(found[name]["high"]),
                "row": row, "at": found[name],
            }
            for tick, (row, found) in zip(ticks, rows, strict=True)
            if found[name]
        ]  # fmt: skip
        path = " ".join(f"{point['x']},{point['y']}" for point in points)
        lines.append({"name": name, "label": label, "says": says, "points": points, "path": path})
    if not any(line["points"] for line in lines):
        return None
    grid = [{"y": height(rate), "label": f"{100 * rate:.0f} %"} for rate in (0, 0.25, 0.5, 0.75, 1)]
    right = PLOT["width"] - PLOT["right"]
    return {**PLOT, "end": right, "ticks": ticks, "lines": lines, "grid": grid}


def _time(text: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(text) if text else None
