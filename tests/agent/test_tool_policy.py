"""Deployments whose models answer in tool calls: each dialect over its own API, on a real port."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from agent import policies
from agent.dialects import Frame
from agent.dialects.tools import NAMES, State, load, write_all
from agent.models import Deployment
from agent.policies.calling import ToolPolicy
from agent.policies.wires import Generate, Messages, Responses, wire_of
from agent.policy import Policy, PolicyMisconfigured, PolicyRequest
from trajectory import Actor, Click, Finish, Hotkey, Observation, Shell, Step

SEEN = Observation("a" * 64, 1280, 720)
CLICK = Click(640, 360)
PICTURE = base64.b64encode(b"a picture").decode()
DONE = Step(0, SEEN, "I look for the door.", Click(10, 20), Actor.AGENT)
RUN = Step(1, SEEN, "I list the files.", Shell("ls"), Actor.HUMAN)


class Vendor:
    """One endpoint that answers in a dialect: with the calls `calls`, after `said`."""

    def __init__(self, dialect: str) -> None:
        self.dialect, self.calls, self.said = dialect, list[Any](), "I press it."
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                headers = {key.lower(): value for key, value in self.headers.items()}
                vendor.asked.append((self.path, headers, json.loads(self.rfile.read(length))))
                data = json.dumps(vendor.answer()).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self) -> dict[str, Any]:
        match wire_of(self.dialect):
            case Responses():
                calls = [
                    {"type": "computer_call", "call_id": "c", "action": call} for call in self.calls
                ]
                text = {"type": "message", "content": [{"type": "output_text", "text": self.said}]}
                return {"model": "vendor-1", "output": [text, *calls]}
            case Messages():
                calls = [
                    {"type": "tool_use", "id": "c", **call}
                    if "input" in call
                    else {"type": "tool_use", "id": "c", "name": "computer", "input": call}
                    for call in self.calls
                ]
                text = {"type": "text", "text": self.said}
                return {"model": "vendor-1", "content": [text, *calls]}
            case Generate():
                calls = [{"functionCall": call} for call in self.calls]
                content = {"parts": [{"text": self.said}, *calls]}
                return {"modelVersion": "vendor-1", "candidates": [{"content": content}]}
            case _:
                blocks = "".join(
                    f"\n```python\n{call['code']}\n```"
                    if "code" in call
                    else f"\n<tool_call>{json.dumps(call)}</tool_call>"
                    for call in self.calls
                )
                message = {"role": "assistant", "content": self.said + blocks}
                return {"model": "vendor-1", "choices": [{"message": message}]}

    def policy(self, **fields: Any) -> Policy:
        row = Deployment(
            name="vendor", kind="openai", base_url=self.url, model="m-1", dialect=self.dialect,
            **fields,
        )  # fmt: skip
        row.clean()
        return policies.load(row, pictures=lambda sha: b"a picture", token="key-1")


@pytest.fixture(params=NAMES)
def vendor(request: pytest.FixtureRequest) -> Iterator[Vendor]:
    vendor = Vendor(request.param)
    yield vendor
    vendor.server.shutdown()
    vendor.server.server_close()


def test_calls_of_every_dialect_become_actions(vendor: Vendor) -> None:
    dialect = load(vendor.dialect)
    wanted = [CLICK, Hotkey(("enter",))]
    vendor.calls = list(write_all(dialect, wanted, Frame(1280, 720), State()))
    (candidate,) = vendor.policy().propose(PolicyRequest("Press it.", (), SEEN), 2)
    assert candidate.error == "" and candidate.action is not None
    *_, click, key = (candidate.action, *candidate.more)  # one dialect moves before it clicks
    assert isinstance(click, Click) and key == wanted[1]
    assert abs(click.x - 640) <= 1 and abs(click.y - 360) <= 1
    assert (candidate.thought, candidate.version) == ("I press it.", "vendor-1")
    assert len(vendor.asked) == 2  # one for each candidate: they were alike

    path, headers, body = vendor.asked[0]
    said = json.dumps(body)
    assert "Press it." in said and PICTURE in said
    assert "key-1" in (headers.get("authorization", "") + headers.get("x-api-key", "")
                       + headers.get("x-goog-api-key", ""))  # fmt: skip
    assert "m-1" in path + said


def test_the_history_is_told_as_the_model_writes_it(vendor: Vendor) -> None:
    dialect = load(vendor.dialect)
    vendor.calls = list(write_all(dialect, [CLICK], Frame(1280, 720), State()))
    request = PolicyRequest("Press it.", (DONE, RUN), SEEN, hint="The red one.")
    (candidate,) = vendor.policy(history_n=2).propose(request, 1)
    assert candidate.action is not None
    said = json.dumps(vendor.asked[0][2], ensure_ascii=False)
    assert "I look for the door." in said and "The red one." in said
    assert "I list the files." in said  # no dialect has a shell: it is told in words
    assert said.count(PICTURE) == 2


@pytest.mark.parametrize("name", ["openai", "anthropic-20251124", "gemini", "playwright-mcp"])
def test_an_answer_without_a_call_is_the_end(name: str) -> None:
    vendor = Vendor(name)
    vendor.said = "It is 42."
    (candidate,) = vendor.policy().propose(PolicyRequest("Count.", (), SEEN), 1)
    assert candidate.action == Finish("It is 42.")


@pytest.mark.parametrize(
    "name, call, error",
    [
        ("openai", {"type": "click", "button": "left", "x": 99999, "y": 1}, "outside"),
        ("anthropic-20250124", {"action": "zoom", "region": [0, 0, 1, 1]}, "zoom"),
        ("gemini", {"name": "fly", "args": {}}, "no function called"),
        ("qwen", {"name": "computer_use", "arguments": {"action": "fly"}}, "fly"),
    ],
)
def test_what_cannot_be_read_is_a_candidate_that_says_why(name: str, call: Any, error: str) -> None:
    vendor = Vendor(name)
    vendor.calls = [call]
    (candidate,) = vendor.policy().propose(PolicyRequest("Fly.", (), SEEN), 1)
    assert candidate.action is None and error in candidate.error


@pytest.mark.parametrize(
    "fields, name",
    [
        ({"kind": "local"}, "kind"),
        ({"reads": "elements"}, "reads"),
        ({"base_url": ""}, "base_url"),
        ({"model": ""}, "model"),
    ],
)
def test_a_deployment_that_no_policy_can_be_made_of_is_refused(
    fields: dict[str, str], name: str
) -> None:
    known = {
        "kind": "openai",
        "base_url": "http://127.0.0.1:9",
        "model": "m",
        "reads": "screenshot",
    }
    row = Deployment(name="x", dialect="gemini", **{**known, **fields})
    with pytest.raises(ValidationError) as refused:
        row.clean()
    assert name in refused.value.message_dict
    with pytest.raises(PolicyMisconfigured):
        policies.load(row, pictures=lambda sha: b"")


def test_every_tool_dialect_can_be_chosen_in_the_admin() -> None:
    assert set(NAMES) <= set(Deployment.Dialect.values)


@pytest.mark.parametrize("steps, seen", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (9, 5)])
def test_as_many_screenshots_are_shown_as_there_are_and_the_deployment_says(
    steps: int, seen: int
) -> None:
    policy = Vendor("openai").policy(history_n=5)
    history = tuple(Step(n, SEEN, "", CLICK, Actor.AGENT) for n in range(steps))
    assert isinstance(policy, ToolPolicy)
    assert len(policy.question(PolicyRequest("Go on.", history, SEEN)).pictures) == seen


@pytest.mark.parametrize(
    "name, answer, why",
    [
        ("openai", {"status": "incomplete", "output": [{"type": "reasoning"}]}, "incomplete"),
        ("openai", {"output": [{"type": "message", "content": [{"type": "refusal"}]}]}, "neither"),
        (
            "anthropic-20251124",
            {"stop_reason": "max_tokens", "content": [{"type": "text", "text": "I would"}]},
            "max_tokens",
        ),
        ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}, "neither"),
        ("gemini", {"candidates": [{"finishReason": "MAX_TOKENS"}]}, "MAX_TOKENS"),
        (
            "playwright-mcp",
            {"choices": [{"finish_reason": "length", "message": {"content": "I would"}}]},
            "length",
        ),
    ],
)
def test_an_answer_that_was_cut_off_or_refused_is_not_the_end(
    name: str, answer: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor = Vendor(name)
    monkeypatch.setattr(vendor, "answer", lambda: answer)
    (candidate,) = vendor.policy().propose(PolicyRequest("Count.", (), SEEN), 1)
    assert candidate.action is None and why in candidate.error
