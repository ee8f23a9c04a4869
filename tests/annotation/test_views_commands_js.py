"""The page's parser and the server's must agree; node comes with Playwright."""

import json
import subprocess
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

from annotation import commands
from trajectory import action_to_dict

SCRIPT = """
import fs from "node:fs";
const source = fs.readFileSync(process.argv[1], "utf8");
const { parse } = await import("data:text/javascript," + encodeURIComponent(source));
const answers = JSON.parse(process.argv[2]).map((text) => {
  try { return parse(text); } catch (error) { return { error: error.message }; }
});
console.log(JSON.stringify(answers));
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


@pytest.fixture(scope="module")
def answers():
    node, _ = compute_driver_executable()
    module = Path(__file__).parents[2] / "static/js/commands.js"
    run = subprocess.run(
        [node, "--input-type=module", "-e", SCRIPT, str(module), json.dumps(GOOD + BAD)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return json.loads(run.stdout)


@pytest.mark.parametrize("index", range(len(GOOD)))
def test_the_page_reads_what_the_server_reads(answers, index):
    assert answers[index] == action_to_dict(commands.parse(GOOD[index]))


@pytest.mark.parametrize("index", range(len(BAD)))
def test_the_page_refuses_what_the_server_refuses(answers, index):
    assert "error" in answers[len(GOOD) + index]
    with pytest.raises(commands.CommandError):
        commands.parse(BAD[index])
