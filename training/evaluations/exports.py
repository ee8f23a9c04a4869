"""An evaluation as text: for a terminal, for a page of documentation, for a spreadsheet, for a program."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]

HEAD = (
    "task", "episodes", "success %", "95 % interval", "reward", "normalised", "steps",
    "env failures", "random", "oracle",
)  # fmt: skip


def table(report: Json) -> str:
    """Return the report for a terminal: what was evaluated, a row per family and task, the curve."""
    rows = [HEAD, *rows_of(report)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD))]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*about(report), "", *lines, "", *_extras(report)]) + "\n"


def markdown(report: Json) -> str:
    """Return the report as Markdown, ready to be put into a document."""
    head = f"| {' | '.join(HEAD)} |\n|{'|'.join(['---'] + ['---:'] * (len(HEAD) - 1))}|"
    body = "\n".join(f"| {' | '.join(row)} |" for row in rows_of(report))
    facts = "\n".join(f"- {line}" for line in about(report))
    extras = "\n".join(f"- {line}" for line in _extras(report))
    return f"### {report['name']}\n\n{facts}\n\n{head}\n{body}\n\n{extras}\n"


def as_csv(report: Json) -> str:
    """Return one row per family and task, numbers unrounded, as CSV."""
    out = io.StringIO()
    names = (
        "scope", "name", "episodes", "judged", "successes", "success", "success_low",
        "success_high", "reward", "reward_low", "reward_high", "normalised", "normalised_low",
        "normalised_high", "steps", "steps_to_success", "env_failures", "attempts_lost", "unjudged",
        "cancelled", "random", "oracle",
    )  # fmt: skip
    writer = csv.DictWriter(out, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for scope, name, one in _scopes(report):
        values = {**one, "scope": scope, "name": name}
        for field in ("success", "reward", "normalised"):
            estimate = one[field] or {}
            values |= {
                field: estimate.get("value"),
                f"{field}_low": estimate.get("low"),
                f"{field}_high": estimate.get("high"),
            }
        writer.writerow(values)
    return out.getvalue()


def as_json(report: Json) -> str:
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


FORMATS: dict[str, Callable[[Json], str]] = {
    "table": table,
    "json": as_json,
    "csv": as_csv,
    "md": markdown,
}


def about(report: Json) -> list[str]:
    """Return what was evaluated and how, one fact per line; the observation among them, always."""
    seeds = report["seeds"]
    counts = report["overall"]
    lines = [
        f"Deployment: {report['deployment']}, version {report['version'] or 'not stated'}, "
        f"reads {report['reads']}",
        f"Suite: {report['suite']} ({len(report['tasks'])} tasks, checksum "
        f"{report['suite_checksum'][:12]})",
        f"Seeds {seeds[0]} to {seeds[-1]} ({len(seeds)}), {report['repeats']} sample"
        f"{'s' if report['repeats'] > 1 else ''} each, at most {report['max_steps']} steps",
        f"{counts['judged']} of {counts['episodes']} episodes judged, state: {report['state']}",
    ]
    apart = {
        "env_failures": "with a broken environment",
        "unjudged": "without a verdict",
        "cancelled": "cancelled",
        "open": "not finished",
    }
    left_out = [f"{counts[key]} {words}" for key, words in apart.items() if counts[key]]
    if left_out:
        lines.append(f"In no mean: {', '.join(left_out)}")
    return lines


def rows_of(report: Json) -> list[tuple[str, ...]]:
    """Return the cells of the table, one row for everything, each family and each task."""
    rows: list[tuple[str, ...]] = []
    for scope, name, one in _scopes(report):
        success = one["success"]
        rows.append(
            (
                {"overall": "all", "family": f"{name}/*"}.get(scope, name),
                str(one["judged"]),
                _number(success, 100),
                f"{100 * success['low']:.1f} to {100 * success['high']:.1f}" if success else "",
                _number(one["reward"], digits=3),
                _number(one["normalised"]),
                "" if one["steps"] is None else f"{one['steps']:.1f}",
                str(one["env_failures"]),
                _percent(one.get("random")),
                "" if one.get("oracle") is None else "yes" if one["oracle"] else "no",
            )
        )
    return rows


def _scopes(report: Json) -> Iterator[tuple[str, str, Json]]:
    yield "overall", "", report["overall"]
    for name, one in report["families"].items():
        yield "family", name, one
    for name, one in report["tasks"].items():
        yield "task", name, one


def _extras(report: Json) -> list[str]:
    lines = []
    if len(report["pass_at_k"]) > 1:
        passes = (f"pass@{one['k']} {100 * one['value']:.1f} %" for one in report["pass_at_k"])
        lines.append(f"{', '.join(passes)} (unbiased)")
    curve = report["curve"]
    if curve:
        stride = max(1, len(curve) // 8)
        shown = [*curve[:-1:stride], curve[-1]]
        points = (f"{point['steps']}: {100 * point['value']:.1f} %" for point in shown)
        lines.append(f"Success against steps allowed: {', '.join(points)}")
    return lines


def _number(estimate: Json | None, factor: float = 1.0, digits: int = 1) -> str:
    return "" if estimate is None else f"{factor * estimate['value']:.{digits}f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    first, *rest = row
    cells = [first.ljust(widths[0])]
    cells += [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
    return "  ".join(cells).rstrip()
