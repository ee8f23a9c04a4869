"""The page's parser and the server's must agree; node comes with Playwright."""

import json
import subprocess
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

from annotation.hand import commands
from trajectory import action_to_dict

SCRIPT = """
import fs from "node:fs";
const source = fs.readFileSync(process.argv[1], "utf8");
const { parse, complete, withPlace } = await import("data:text/javascript," + encodeURIComponent(source));
const calls = {
  parse: (text) => { try { return parse(text); } catch (error) { return { error: error.message }; } },
  complete: (text) => complete(text, text.length).map((choice) => choice.text),
  place: (text) => withPlace(text, [7, 8]),
};
console.log(JSON.stringify(JSON.parse(process.argv[2]).map(([name, text]) => calls[name](text))));
"""
GOOD = [
    "click(412, 305)",
    " Click ( 412,305 , right , double ) ",
    "click(0, 0, hold ctrl+shift, count 4)",
    "move(3, 4)",
    "mouse_down(right)",
    "mouse_up()",
    "drag(1, 2, 3, 4, 5, 6, middle)",
    "scroll(640, 300, up, left 2)",
    "long_press(1, 2, 1500)",
    "key_down(shift)",
    'hotkey(ctrl, ",")',
    "hotkey(ctrl+c)",
    'type("hello, \\"world\\"", submit)',
    "type('it\\'s')",
    'type("a\nb")',
    "wait()",
    'navigate("http://x/")',
    "navigate_back()",
    'open_app("xterm")',
    'shell("ls -l", 500)',
    "finish()",
    'fail("no")',
    'ask_user("which?")',
]
BAD = [
    "", "click", "clik(1, 2)", "click(1)", "click(a, 2)", "click(1, -2)", "click(1, 2, sideways)",
    "type(hello)", 'type("hello)', 'type("a" "b")', "hotkey()", "scroll(1, 2)", "drag(1, 2)",
    "wait(5, 6)", "click(4, 5,)", "click(,4)", 'type("\\q")',
]  # fmt: skip


COMPLETIONS = [
    ("dr", "drag()"),
    ("", "click()"),
    ("hotkey(ct", "hotkey(ctrl)"),
    ("hotkey(ctrl, ent", "hotkey(ctrl, enter)"),
    ("scroll(640, 300, do", "scroll(640, 300, down 3)"),
    ('type("hello", su', 'type("hello", submit)'),
    ("click(1, 2,dou", "click(1, 2, double)"),
]
PLACES = [
    ("", "click(7, 8)"),
    ("click()", "click(7, 8)"),
    ("click(1, 2)", "click(7, 8)"),
    ("click(1, 2, right)", "click(7, 8, right)"),
    ("scroll(1, 2, up 5)", "scroll(7, 8, up 5)"),
    ("scroll()", "scroll(7, 8, down 3)"),
    ('type("a")', "click(7, 8)"),
]


def ask_page(calls: list[tuple[str, str]]) -> list:
    """Answer each (function, text) with what the page's module says."""
    node, _ = compute_driver_executable()
    module = Path(__file__).parents[2] / "static/js/commands.js"
    run = subprocess.run(
        [node, "--input-type=module", "-e", SCRIPT, str(module), json.dumps(calls)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return json.loads(run.stdout)


def test_the_page_reads_what_the_server_reads() -> None:
    for text, action in zip(GOOD, ask_page([("parse", text) for text in GOOD]), strict=True):
        assert action == action_to_dict(commands.parse(text)), text


def test_the_page_refuses_what_the_server_refuses() -> None:
    for text, answer in zip(BAD, ask_page([("parse", text) for text in BAD]), strict=True):
        assert "error" in answer, text
        with pytest.raises(commands.CommandError):
            commands.parse(text)


def test_what_is_begun_is_completed() -> None:
    offered = ask_page([("complete", begun) for begun, _ in COMPLETIONS])
    for (begun, wanted), choices in zip(COMPLETIONS, offered, strict=True):
        assert wanted in choices, begun
    assert ask_page([("complete", 'type("cl'), ("complete", "wait(5)")]) == [[], []]


def test_a_picked_place_moves_the_action() -> None:
    moved = ask_page([("place", text) for text, _ in PLACES])
    assert moved == [wanted for _, wanted in PLACES]
