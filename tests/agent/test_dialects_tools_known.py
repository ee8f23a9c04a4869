"""What public models emit as tool calls, and the mistakes of other converters, one test each."""

import pytest

from agent.dialects import DialectError, Frame, LossyConversion, ParseError
from agent.dialects.tools import State, load, read_all, write_all
from agent.dialects.tools.android import Android
from agent.dialects.tools.anthropic import Anthropic
from agent.dialects.tools.openai import OpenAI
from trajectory import (
    AskUser,
    Click,
    Drag,
    Element,
    Hotkey,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    OpenApp,
    Scroll,
    Type,
    Wait,
)

FRAME = Frame(1920, 1080)
HERE = State((7, 9))


def read(name, call, frame=FRAME, state=HERE):
    return load(name).read(call, frame, state)


def script(code, state=HERE):
    return read("pyautogui", {"code": code}, state=state)


EMITTED = [
    ("openai", {"type": "click", "button": "left", "x": 0, "y": 0}, [Click(0, 0)]),
    ("openai", {"type": "keypress", "keys": ["CTRL", "c"]}, [Hotkey(("ctrl", "c"))]),
    ("openai", {"type": "drag", "path": [[1, 2], [3, 4]]}, [Drag(((1, 2), (3, 4)))]),
    ("openai", {"type": "type", "text": "hi\n"}, [Type("hi", submit=True)]),
    (
        "openai",
        {"type": "computer_call", "id": "c", "actions": [{"type": "wait"}, {"type": "move", "x": 1, "y": 2}]},
        [Wait(2000), Move(1, 2)],
    ),
    (
        "openai",
        {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": 300, "keys": ["CTRL"]},
        [KeyDown("ctrl"), Scroll(1, 2, dy=3), KeyUp("ctrl")],
    ),
    ("anthropic-20250124", {"action": "left_click"}, [Click(7, 9)]),
    (
        "anthropic-20250124",
        {"action": "left_click", "coordinate": [1, 2], "key": "shift"},
        [Click(1, 2, modifiers=("shift",))],
    ),
    ("anthropic-20251124", {"action": "key", "text": "Down Down"}, [Hotkey(("down",))] * 2),
    ("anthropic-20251124", {"action": "key", "text": "ctrl+minus"}, [Hotkey(("ctrl", "-"))]),
    (
        "anthropic-toolset_20260801",
        {"type": "tool_use", "name": "key", "input": {"text": "Tab", "repeat": 3}},
        [Hotkey(("tab",))] * 3,
    ),
    ("osworld", {"action_type": "CLICK", "parameters": {"num_clicks": 3}}, [Click(7, 9, count=3)]),
    ("osworld", {"action_type": "DONE"}, None),
    ("gemini-browser", {"name": "click_at", "args": {"x": 500, "y": 500}}, [Click(960, 540)]),
    (
        "gemini-browser",
        {"name": "type_text_at", "args": {"x": 0, "y": 0, "text": "a"}},
        [Click(0, 0), Hotkey(("ctrl", "a")), Hotkey(("delete",)), Type("a", submit=True)],
    ),
    ("gemini-browser", {"name": "open_web_browser", "args": {}}, [OpenApp("browser")]),
    (
        "gemini",
        {"name": "scroll", "args": {"x": 0, "y": 0, "direction": "down", "intent": "more"}},
        [Scroll(0, 0, dy=3)],
    ),
    ("gemini", {"name": "long_press", "args": {"x": 0, "y": 0}}, [LongPress(0, 0, 2000)]),
    (
        "qwen",
        {"name": "computer_use", "arguments": '{"action": "left_click", "coordinate": [500, 0]}'},
        [Click(960, 0)],
    ),
    ("qwen", {"arguments": {"action": "call_user"}}, [AskUser()]),
    ("android", {"action_type": "click", "x": 0, "y": 0}, [Click(0, 0)]),
    ("playwright-mcp", {"name": "browser_mouse_wheel", "arguments": {"deltaY": 200}}, [Scroll(7, 9, dy=2)]),
    (
        "playwright-mcp",
        {"name": "browser_mouse_click_xy", "arguments": {"element": "the OK button", "x": 1, "y": 2}},
        [Click(1, 2)],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "actions"), EMITTED)
def test_what_models_emit_is_read(name, call, actions):
    found = read(name, call)
    assert actions is None or list(found) == actions


@pytest.mark.parametrize(
    ("code", "actions"),
    [
        ("import pyautogui\nimport time\npyautogui.click(1, 2)", [Click(1, 2)]),
        ("pyautogui.click((1, 2), clicks=2)", [Click(1, 2, count=2)]),
        ("pyautogui.moveTo(5, 6, duration=0.5); pyautogui.click()", [Move(5, 6), Click(5, 6)]),
        ("pyautogui.moveRel(10, -9)", [Move(17, 0)]),
        ("pyautogui.dragTo(5, 6, duration=1, button='left')", [Drag(((7, 9), (5, 6)))]),
        ("pyautogui.dragTo(x=5, y=6)", [Drag(((7, 9), (5, 6)))]),
        ("pyautogui.scroll(-3)", [Scroll(7, 9, dy=3)]),
        ("pyautogui.hscroll(-3)", [Scroll(7, 9, dx=-3)]),
        ("pyautogui.press('enter', presses=2)", [Hotkey(("enter",))] * 2),
        ("pyautogui.press(['a', 'b'])", [Hotkey(("a",)), Hotkey(("b",))]),
        ("pyautogui.hotkey('ctrl', 'c')", [Hotkey(("ctrl", "c"))]),
        ("pyautogui.hotkey(['ctrl', 'c'], interval=0.1)", [Hotkey(("ctrl", "c"))]),
        ("pyautogui.typewrite('a\\nb', interval=0.05)", [Type("a\nb")]),
        ("pyautogui.keyDown('shift')\npyautogui.keyUp('shift')", [KeyDown("shift"), KeyUp("shift")]),
        ("pyautogui.mouseDown(1, 2)", [Move(1, 2), MouseDown()]),
        ("time.sleep(1.5)", [Wait(1500)]),
        ("WAIT", [Wait(2000)]),
    ],
)  # fmt: skip
def test_pyautogui_scripts_are_read(code, actions):
    assert list(script(code)) == actions


@pytest.mark.parametrize(
    "code",
    [
        "__import__('os').system('touch owned')",
        "pyautogui.click(__import__('os').getpid(), 1)",
        "import os",
        "import pyautogui as p",
        "from pyautogui import click",
        "exec('1')",
        "pyautogui.write(open('/etc/passwd').read())",
        "pyautogui.screenshot('x.png')",
        "pyautogui.__class__()",
        "for i in range(9): pyautogui.click(1, 2)",
        "x = 5",
        "pyautogui.click(*[1, 2])",
        "pyautogui.click(**{'x': 1})",
        "pyautogui.click(1, 2, x=1)",
        "pyautogui.click(1, 2, 3, 4, 'left', 6, 7, 8)",
        "(" * 500,
        "pyautogui.write('" + "a" * 30_000 + "')",
        "pyautogui.press('a')\n" * 300,
        "time.time()",
        "",
        "pyautogui.press('a', presses=10**9)",
        "pyautogui.click(1, 2",
    ],
)
def test_a_script_is_never_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParseError):
        script(code)
    assert not list(tmp_path.iterdir())


# -- the known mistakes of other converters --------------------------------------------------------


def test_press_and_key_down_hold_where_the_dialect_says_so_and_tap_where_it_says_that():
    down = {"action_type": "KEY_DOWN", "parameters": {"key": "ctrl"}}
    press = {"action_type": "PRESS", "parameters": {"key": "ctrl"}}
    assert read("osworld", down) == (KeyDown("ctrl"),)
    assert read("osworld", press) == (Hotkey(("ctrl",)),)


@pytest.mark.parametrize("action", [KeyUp("ctrl"), MouseDown(), MouseUp(), AskUser("which?")])
def test_release_mouse_down_mouse_up_and_call_user_are_never_dropped(action):
    for name in ("openai", "anthropic-20251124", "osworld", "qwen", "gemini", "playwright-mcp"):
        try:
            calls = write_all(load(name), [action], FRAME, State((1, 2)))
        except LossyConversion:
            continue
        assert calls and read_all(load(name), calls, FRAME, State((1, 2))) == (action,)


def test_a_scroll_sideways_is_not_diagonal():
    call = {
        "action": "scroll",
        "coordinate": [1, 2],
        "scroll_direction": "left",
        "scroll_amount": 5,
    }
    assert read("anthropic-20251124", call) == (Scroll(1, 2, dx=-5, dy=0),)


def test_hold_key_and_triple_click_are_there():
    call = {"action": "hold_key", "text": "shift", "duration": 2}
    assert read("anthropic-20250124", call) == (KeyDown("shift"), Wait(2000), KeyUp("shift"))
    call = {"action": "triple_click", "coordinate": [1, 2]}
    assert read("anthropic-20250124", call) == (Click(1, 2, count=3),)


@pytest.mark.parametrize(
    ("text", "keys"),
    [("ctrl+-", ("ctrl", "-")), ("ctrl++", ("ctrl", "+")), ("+", ("+",)), ("-", ("-",)),
     ("ctrl + c", ("ctrl", "c")), ("ctrl+ ", ("ctrl", "space"))],
)  # fmt: skip
def test_the_last_separator_may_be_a_key(text, keys):
    call = {"name": "browser_press_key", "arguments": {"key": text}}
    assert read("playwright-mcp", call) == (Hotkey(keys),)


def test_500_pixels_are_not_500_clicks_of_the_wheel():
    call = {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": 500}
    assert read("openai", call) == (Scroll(1, 2, dy=5),)
    assert OpenAI(scroll_px=50).read(call, FRAME, HERE) == (Scroll(1, 2, dy=10),)


def test_a_part_of_a_notch_is_lost_only_where_that_is_wanted():
    call = {"type": "scroll", "x": 1, "y": 2, "scroll_x": -30, "scroll_y": 646}
    with pytest.raises(LossyConversion, match="no whole number of notches"):
        read("openai", call)
    assert OpenAI(nearest=True).read(call, FRAME, HERE) == (Scroll(1, 2, dx=-1, dy=6),)


def test_zero_is_a_coordinate_and_no_absence():
    call = {"action": "left_click", "coordinate": [0, 0]}
    assert read("anthropic-20250124", call) == (Click(0, 0),)
    call = {"action_type": "CLICK", "parameters": {"x": 0, "y": 0}}
    assert read("osworld", call) == (Click(0, 0),)
    assert script("pyautogui.click(0, 0)") == (Click(0, 0),)
    with pytest.raises(ParseError, match="y"):
        script("pyautogui.click(0)")
    (call,) = write_all(load("playwright-mcp"), [Click(0, 0)], FRAME)
    assert call["arguments"] == {"x": 0, "y": 0}


def test_less_than_stays_less_than():
    assert script("pyautogui.write('a < b > c')") == (Type("a < b > c"),)
    assert script("pyautogui.press('<')") == (Hotkey(("<",)),)
    (call,) = write_all(load("osworld"), [Type("<")], FRAME)
    assert call["parameters"]["text"] == "<"


def test_a_capital_beside_ctrl_is_the_key_to_openai_and_a_capital_to_playwright():
    assert read("openai", {"type": "keypress", "keys": ["CTRL", "A"]}) == (Hotkey(("ctrl", "a")),)
    assert read("openai", {"type": "keypress", "keys": ["A"]}) == (Hotkey(("A",)),)
    call = {"name": "browser_press_key", "arguments": {"key": "Control+A"}}
    assert read("playwright-mcp", call) == (Hotkey(("ctrl", "A")),)


def test_what_a_person_has_to_confirm_is_no_action():
    safety = {"decision": "require_confirmation", "explanation": "a CAPTCHA"}
    with pytest.raises(LossyConversion, match="CAPTCHA"):
        read("gemini", {"name": "click", "args": {"x": 1, "y": 2, "safety_decision": safety}})
    call = {"type": "computer_call", "action": {"type": "wait"}}
    with pytest.raises(LossyConversion, match="malicious"):
        read("openai", call | {"pending_safety_checks": [{"code": "malicious"}]})


# -- versions and places ---------------------------------------------------------------------------


def test_the_first_anthropic_tool_moves_before_it_clicks():
    old = load("anthropic-20241022")
    calls = write_all(old, [Click(3, 4)], FRAME)
    assert calls == ({"action": "mouse_move", "coordinate": [3, 4]}, {"action": "left_click"})
    assert read_all(old, calls, FRAME) == (Click(3, 4),)
    assert write_all(old, [Click(3, 4)], FRAME, State((3, 4))) == ({"action": "left_click"},)
    with pytest.raises(ParseError, match="pointer"):
        read_all(old, [{"action": "left_click"}], FRAME)
    with pytest.raises(DialectError, match="coordinate"):
        read_all(old, [{"action": "left_click", "coordinate": [1, 2]}], FRAME, HERE)
    with pytest.raises(ParseError, match="triple_click"):
        read_all(old, [{"action": "triple_click"}], FRAME, HERE)


def test_the_preview_tool_of_openai_holds_no_keys():
    call = {"type": "click", "button": "left", "x": 1, "y": 2, "keys": ["CTRL"]}
    assert read("openai", call) == (Click(1, 2, modifiers=("ctrl",)),)
    with pytest.raises(ParseError, match="keys"):
        read("openai-preview", call)
    with pytest.raises(LossyConversion, match="ctrl"):
        write_all(load("openai-preview"), [Click(1, 2, modifiers=("ctrl",))], FRAME)


def test_places_count_the_picture_that_the_model_saw():
    scaled = Anthropic("20251124", picture=(960, 540))
    call = {"action": "left_click", "coordinate": [480, 270]}
    assert scaled.read(call, FRAME, HERE) == (Click(960, 540),)
    assert scaled.write(Click(960, 540), FRAME, HERE) == (call,)
    call = {"action_type": "CLICK", "parameters": {"x": 960, "y": 540}}
    assert read("osworld", call, Frame(1280, 720)) == (Click(640, 360),)
    with pytest.raises(ParseError, match="outside"):
        read("anthropic-20251124", {"action": "mouse_move", "coordinate": [1921, 0]})
    with pytest.raises(LossyConversion, match="outside"):
        write_all(load("openai"), [Click(1920, 0)], FRAME)


def test_an_android_element_is_its_centre_and_never_beside_a_place():
    frame = Frame(
        100, 200, (Element("button", "a", (0, 0, 10, 10)), Element("button", "b", (20, 20, 8, 8)))
    )
    assert read("android", {"action_type": "click", "index": 1}, frame) == (Click(24, 24),)
    assert Android(by_index=True).write(Click(24, 24), frame, HERE) == (
        {"action_type": "click", "index": 1},
    )
    with pytest.raises(ParseError, match="never both"):
        read("android", {"action_type": "click", "index": 0, "x": 1, "y": 2}, frame)
    with pytest.raises(ParseError, match="no element 2"):
        read("android", {"action_type": "click", "index": 2}, frame)


def test_a_zoom_is_named_as_what_would_be_lost():
    with pytest.raises(LossyConversion, match="zoom"):
        read("anthropic-20251124", {"action": "zoom", "region": [0, 0, 10, 10]})
