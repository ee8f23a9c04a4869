"""The calls of every tool dialect, in the form that it writes itself, as Hypothesis strategies."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from agent.dialects import Frame
from agent.dialects.frame import span

SIZES: dict[str, tuple[int, int]] = {
    "osworld": (1920, 1080),
    "gemini": (1000, 1000),
    "gemini-browser": (1000, 1000),
}

texts = st.text(st.characters(codec="utf-8"), max_size=20)
words = texts.filter(bool)
whole_seconds = st.integers(1, 3600)


def size_of(name: str, frame: Frame) -> tuple[int, int]:
    """Return how the dialect `name` counts a frame."""
    if name.startswith("qwen"):
        return span("thousandth" if name == "qwen" else "resized", frame)
    return SIZES.get(name, (frame.width, frame.height))


def calls(name: str, frame: Frame) -> st.SearchStrategy[dict[str, Any]]:
    """Return every call of the dialect `name`, but for synonyms of others."""
    width, height = size_of(name, frame)
    xs, ys = st.integers(0, width - 1), st.integers(0, height - 1)
    return st.one_of(*_FORMS[name.split("-")[0].removesuffix(".5")](name, xs, ys))


def _openai(name, xs, ys):
    def action(kind, **fields):
        return st.fixed_dictionaries({"type": st.just(kind), **fields})

    keys = st.lists(st.sampled_from(["CTRL", "SHIFT", "ALT", "CMD"]), min_size=1, unique=True)
    more = {} if name.endswith("preview") else {"keys": keys}
    place = {"x": xs, "y": ys}
    buttons = st.sampled_from(["left", "right", "wheel", "back", "forward"])
    path = st.lists(st.fixed_dictionaries(place), min_size=2, max_size=4)
    px = st.integers(-9, 9).map(lambda n: 100 * n)
    yield action("click", button=buttons, **place)
    yield action("click", button=buttons, **place, **more)
    yield action("double_click", **place, **more)
    yield action("move", **place)
    yield action("drag", path=path)
    yield action("scroll", **place, scroll_x=px, scroll_y=px)
    yield action("scroll", **place, scroll_x=px, scroll_y=px, **more)
    pressed = [["ENTER"], ["CTRL", "C"], ["CTRL", "-"], ["ALT", "F4"], ["a"], ["A"], ["SPACE"]]
    yield action("keypress", keys=st.sampled_from(pressed))
    yield action("type", text=texts)
    yield action("wait")
    yield action("screenshot")


def _anthropic(name, xs, ys):
    def action(kind, **fields):
        if "toolset" in name:
            return st.fixed_dictionaries(
                {"name": st.just(kind), "input": st.fixed_dictionaries(fields)}
            )
        return st.fixed_dictionaries({"action": st.just(kind), **fields})

    old = name.endswith("20241022")
    pair = st.tuples(xs, ys).map(list)
    place = {} if old else {"coordinate": pair}
    keys = st.sampled_from(["ctrl", "ctrl+shift", "super"])
    for kind in ("left_click", "right_click", "middle_click", "double_click"):
        yield action(kind, **place)
        if not old:
            yield action(kind, **place, text=keys)
    yield action("mouse_move", coordinate=pair)
    pressed = st.sampled_from(["Return", "ctrl+s", "ctrl+-", "ctrl++", "Page_Down", "A", "+", "é"])
    yield action("key", text=pressed)
    yield action("type", text=texts)
    yield action("screenshot")
    yield action("cursor_position")
    if old:
        yield action("left_click_drag", coordinate=pair)
        return
    yield action("left_click_drag", start_coordinate=pair, coordinate=pair)
    yield action("triple_click", **place)
    yield action("left_mouse_down")
    yield action("left_mouse_up")
    ways = st.sampled_from(["up", "down", "left", "right"])
    yield action("scroll", **place, scroll_direction=ways, scroll_amount=st.integers(1, 50))
    yield action("wait", duration=whole_seconds)
    yield action("hold_key", text=keys, duration=whole_seconds)
    region = st.tuples(xs, ys, xs, ys).map(list)
    yield action("zoom", region=region)


def _osworld(name, xs, ys):
    def action(kind, **fields):
        return st.fixed_dictionaries(
            {"action_type": st.just(kind), "parameters": st.fixed_dictionaries(fields)}
        )

    place = {"x": xs, "y": ys}
    buttons = st.sampled_from(["left", "right", "middle"])
    for kind in ("MOVE_TO", "RIGHT_CLICK", "DOUBLE_CLICK", "DRAG_TO"):
        yield action(kind, **place)
    clicks = [("left", 1), ("left", 3), ("middle", 1), ("middle", 2), ("right", 2), ("right", 3)]
    for button, count in clicks:
        yield action("CLICK", button=st.just(button), **place, num_clicks=st.just(count))
    yield action("MOUSE_DOWN", button=buttons)
    yield action("MOUSE_UP", button=buttons)
    yield action("SCROLL", dx=st.integers(-9, 9), dy=st.integers(-9, 9))
    yield action("TYPING", text=texts)
    one = st.sampled_from(["enter", "esc", "<", ">", "-", "win", "pagedown"])
    for kind in ("PRESS", "KEY_DOWN", "KEY_UP"):
        yield action(kind, key=one)
    yield action("HOTKEY", keys=st.sampled_from([["ctrl", "c"], ["shift", "<"], ["ctrl", "-"]]))
    for kind in ("WAIT", "DONE", "FAIL"):
        yield action(kind)


def _pyautogui(name, xs, ys):
    def script(text, **fields):
        return st.builds(lambda **values: {"code": text.format(**values)}, **fields)

    place = {"x": xs, "y": ys}
    buttons = st.sampled_from(["'left'", "'right'", "'middle'"])
    keys = st.sampled_from(["'enter'", "'ctrl', 'c'", "'ctrl', '-'", "'shift', ','", "'<'"])
    one = st.sampled_from(["'esc'", "'<'", "'win'", "'a'"])
    yield script("pyautogui.moveTo({x}, {y})", **place)
    clicks = {"n": st.integers(1, 3), "b": buttons}
    yield script("pyautogui.click({x}, {y}, clicks={n}, button={b})", **place, **clicks)
    yield script("pyautogui.mouseDown(button={b})", b=buttons)
    yield script("pyautogui.mouseUp(button={b})", b=buttons)
    yield script("pyautogui.dragTo({x}, {y}, button={b})", **place, b=buttons)
    yield script("pyautogui.scroll({n}, {x}, {y})", **place, n=st.integers(-9, 9))
    turns = st.integers(-9, 9).filter(bool)
    yield script("pyautogui.hscroll({n}, {x}, {y})", **place, n=turns)
    yield script("pyautogui.hotkey({k})", k=keys)
    yield script("pyautogui.keyDown({k})", k=one)
    yield script("pyautogui.keyUp({k})", k=one)
    yield script("pyautogui.write({t})", t=texts.map(repr))
    yield script("time.sleep({s})", s=whole_seconds)
    yield script("DONE")
    yield script("FAIL")


def _function(key):
    def action(kind, **fields):
        return st.fixed_dictionaries({"name": st.just(kind), key: st.fixed_dictionaries(fields)})

    return action


def _gemini(name, xs, ys):
    action, place = _function("args"), {"x": xs, "y": ys}
    ways = st.sampled_from(["up", "down", "left", "right"])
    units = st.integers(1, 9).map(lambda n: 100 * n)
    if name == "gemini-browser":
        yield action("click_at", **place)
        yield action("hover_at", **place)
        yield action("type_text_at", **place, text=texts, press_enter=st.booleans())
        yield action("scroll_at", **place, direction=ways, magnitude=units)
        yield action("drag_and_drop", **place, destination_x=xs, destination_y=ys)
        combinations = st.sampled_from(["Enter", "Control+c", "Control+-", "Shift++"])
        yield action("key_combination", keys=combinations)
        yield action("navigate", url=words)
        for kind in ("open_web_browser", "wait_5_seconds", "go_back", "go_forward", "search"):
            yield action(kind)
        return
    for kind in ("click", "double_click", "triple_click", "middle_click", "right_click", "move"):
        yield action(kind, **place)
    yield action("mouse_down", **place)
    yield action("mouse_up", **place)
    yield action("type", text=texts, press_enter=st.booleans())
    yield action("drag_and_drop", start_x=xs, start_y=ys, end_x=xs, end_y=ys)
    yield action("long_press", **place, seconds=whole_seconds)
    yield action("wait", seconds=whole_seconds)
    for kind in ("press_key", "key_down", "key_up"):
        yield action(kind, key=st.sampled_from(["ENTER", "ESC", "a", "-"]))
    yield action("hotkey", keys=st.sampled_from([["CTRL", "A"], ["CTRL", "-"], ["ALT", "F4"]]))
    yield action("scroll", **place, direction=ways, magnitude_in_pixels=units)
    yield action("navigate", url=words)
    yield action("open_app", app_name=words)
    for kind in ("take_screenshot", "go_back", "go_forward", "list_apps"):
        yield action(kind)


def _qwen(name, xs, ys):
    def action(kind, **fields):
        inner = st.fixed_dictionaries({"action": st.just(kind), **fields})
        return st.fixed_dictionaries({"name": st.just("computer_use"), "arguments": inner})

    pair = {"coordinate": st.tuples(xs, ys).map(list)}
    pixels = st.integers(-9, 9).map(lambda n: 100 * n)
    for kind in ("left_click", "right_click", "middle_click", "double_click", "triple_click"):
        yield action(kind, **pair)
        yield action(kind, **pair, text=st.sampled_from(["ctrl", "ctrl+shift"]))
    yield action("mouse_move", **pair)
    yield action("left_click_drag", **pair)
    yield action("left_mouse_down")
    yield action("left_mouse_up")
    yield action("scroll", pixels=pixels, **pair)
    yield action("hscroll", pixels=pixels.filter(bool), **pair)
    yield action("key", keys=st.sampled_from([["ctrl", "c"], ["enter"], ["ctrl", "-"], ["+"]]))
    yield action("key_down", keys=st.just(["shift"]))
    yield action("key_up", keys=st.just(["shift"]))
    yield action("type", text=texts)
    yield action("wait", time=whole_seconds)
    yield action("terminate", status=st.sampled_from(["success", "failure"]))
    yield action("answer", text=words)
    yield action("call_user", text=words)


def _android(name, xs, ys):
    def action(kind, **fields):
        return st.fixed_dictionaries({"action_type": st.just(kind), **fields})

    ways = st.sampled_from(["up", "down", "left", "right"])
    for kind in ("click", "double_tap", "long_press"):
        yield action(kind, x=xs, y=ys)
    yield action("input_text", text=texts)
    yield action("input_text", text=texts, x=xs, y=ys)
    yield action("scroll", direction=ways)
    yield action("swipe", direction=ways)
    yield action("open_app", app_name=words)
    yield action("answer", text=words)
    yield action("status", goal_status=st.sampled_from(["complete", "infeasible"]))
    for kind in ("navigate_back", "navigate_home", "keyboard_enter", "wait", "unknown"):
        yield action(kind)


def _playwright(name, xs, ys):
    action, place = _function("arguments"), {"x": xs, "y": ys}
    px = st.integers(-9, 9).map(lambda n: 100 * n)
    others = st.sampled_from(["right", "middle"])
    yield action("browser_mouse_click_xy", **place)
    yield action("browser_mouse_click_xy", **place, button=others)
    yield action("browser_mouse_click_xy", **place, clickCount=st.integers(2, 3))
    yield action("browser_mouse_move_xy", **place)
    for kind in ("browser_mouse_down", "browser_mouse_up"):
        yield action(kind)
        yield action(kind, button=others)
    yield action("browser_mouse_drag_xy", startX=xs, startY=ys, endX=xs, endY=ys)
    yield action("browser_mouse_wheel", deltaX=px, deltaY=px)
    keys = st.sampled_from(["Enter", "Control+c", "Control+-", "Control++", "a", "A", "ArrowUp"])
    yield action("browser_press_key", key=keys)
    yield action("browser_keydown", key=st.just("Shift"))
    yield action("browser_keyup", key=st.just("Shift"))
    yield action("browser_press_sequentially", text=texts)
    yield action("browser_press_sequentially", text=texts, submit=st.just(True))
    yield action("browser_navigate", url=words)
    yield action("browser_navigate_back")
    yield action("browser_wait_for", time=whole_seconds)
    yield action("browser_wait_for", text=words)
    yield action("browser_take_screenshot")


_FORMS = {
    "openai": _openai,
    "anthropic": _anthropic,
    "osworld": _osworld,
    "pyautogui": _pyautogui,
    "gemini": _gemini,
    "qwen2": _qwen,
    "qwen": _qwen,
    "android": _android,
    "playwright": _playwright,
}
