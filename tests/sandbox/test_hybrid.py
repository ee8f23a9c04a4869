"""Hybrid tasks: the same data in two variants, and an answer that cannot be guessed into a reward."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sandbox.families import load
from sandbox.hybrid.data import CASES, page
from sandbox.provider import SandboxSpec
from sandbox.providers.fake import FakeProvider
from tests.sandbox.desktops import new_id


@pytest.mark.parametrize("kind", CASES)
def test_the_command_gives_the_answer_on_many_seeds(kind: str, tmp_path: Path) -> None:
    answers = set()
    for seed in range(12):
        case = CASES[kind](seed)
        for name, text in case.files.items():
            (tmp_path / name).write_text(text)
        done = subprocess.run(
            ["sh", "-c", case.command], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == case.answer
        assert case.wanted in page(case)
        answers.add(case.answer)
    assert len(answers) > 2


def test_both_variants_ask_about_the_same_data() -> None:
    family = load("hybrid")
    tasks = {spec.name: spec for spec in family.list()}
    gui, sdk = (family.instruction(tasks[f"stock-{v}"], 3) for v in ("gui", "sdk"))
    assert gui != sdk
    assert gui.split(" Use ")[0] == sdk.split(" The browser ")[0]


def test_only_the_right_answer_with_the_saved_file_counts() -> None:
    family = load("hybrid")
    spec = next(spec for spec in family.list() if spec.name == "orders-sdk")
    case = CASES["orders"](5)
    provider = FakeProvider()
    desktop = provider.connect(provider.start(SandboxSpec(new_id())))
    desktop.fence(1)
    guessed = family.verify(desktop, spec, 5, answer=case.answer)
    assert (guessed.reward, guessed.detail) == (0, f"{case.wanted} was not saved")
    saved = f"~/Downloads/{case.wanted}"
    desktop.write_file(saved, case.files[case.wanted].encode(), epoch=1)
    assert family.verify(desktop, spec, 5, answer=f" {case.answer}. ").reward == 1
    assert family.verify(desktop, spec, 5, answer=f"{case.answer} or 7").reward == 0
    assert family.verify(desktop, spec, 5, answer="").reward == 0
    desktop.write_file(saved, b"forged", epoch=1)
    assert family.verify(desktop, spec, 5, answer=case.answer).reward == 0
