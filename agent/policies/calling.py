"""A policy behind a vendor's computer-use API: it is asked by that API and answers in tool calls."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from agent.dialects import DialectError, Frame, LossyConversion, ParseError, frame_of
from agent.dialects.tools import State, ToolDialect, read_all
from agent.policies.endpoint import post
from agent.policies.wires import Chat, Question, Reply, wire_of
from agent.policy import Candidate, PolicyRequest, distinct
from agent.words import describe, short
from trajectory import Action, Click, Drag, Finish, Hotkey, Scroll, Step, Type, Wait

PROMPT = """\
You operate a computer. Look at the screenshot and do the next action that brings the task forward. \
When the task is done, say so in words, with the answer if it asks for one, and call nothing.

Task: {instruction}"""

_WRITTEN = """

Say shortly why, then write one call as JSON, such as:
{examples}"""


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """Asks `url` by the API of `dialect`'s models; each question stands alone, with its history in it."""

    url: str
    model: str
    dialect: ToolDialect
    pictures: Callable[[str], bytes]
    token: str = ""
    history_n: int = 5
    temperature: float = 0.7
    max_tokens: int = 1024
    timeout_s: float = 45.0

    def propose(self, request: PolicyRequest, k: int) -> list[Candidate]:
        """Return 1 to `k` distinct candidates; these APIs answer once, so k are asked at once.

        Raises PolicyUnreachable, PolicyBusy, PolicyRefused.
        """
        body = wire_of(self.dialect.name).body(self.question(request))
        with ThreadPoolExecutor(max(k, 1)) as threads:
            asked = [threads.submit(self._ask, body, request) for _ in range(max(k, 1))]
            return distinct([answer.result() for answer in asked])

    def question(self, request: PolicyRequest) -> Question:
        """Return what is asked: the task, what was done as this model writes it, and the pictures."""
        frame = frame_of(request.observation)
        text = PROMPT.format(instruction=request.instruction.strip())
        if isinstance(wire_of(self.dialect.name), Chat):
            text += _WRITTEN.format(examples="\n".join(_examples(self.dialect, frame)))
        if request.summary:
            text += f"\n\nEarlier: {request.summary.strip()}"
        if request.history:
            done = "\n".join(_done(self.dialect, number, s) for number, s in _numbered(request))
            text += f"\n\nDone so far:\n{done}"
        if request.observation.tool_output:
            text += f"\n\nThe last command printed:\n{short(request.observation.tool_output, 2000)}"
        if request.hint:
            text += f"\n\nThe person beside you says: {request.hint.strip()}"
        shown = request.pictures or self.history_n
        earlier = request.history[max(len(request.history) - max(shown - 1, 0), 0) :]
        seen = [step.observation for step in earlier if step.observation.screenshot]
        names = [observation.screenshot for observation in (*seen, request.observation)]
        if len(names) > 1:
            text += f"\n\nThe last of the {len(names)} screenshots is the screen as it is now."
        pictures = [base64.b64encode(self.pictures(name)).decode() for name in names]
        return Question(self.model, text, pictures, frame, self.temperature, self.max_tokens)

    def _ask(self, body: dict[str, object], request: PolicyRequest) -> Candidate:
        wire = wire_of(self.dialect.name)
        answer = post(
            self.url, wire.path(self.model), body,
            headers=wire.headers(self.token), timeout_s=self.timeout_s,
        )  # fmt: skip
        raw = json.dumps(answer, ensure_ascii=False)[:20_000]
        version = str(answer.get("model") or answer.get("modelVersion") or self.model)
        try:
            reply = wire.reply(answer)
            actions = self._actions(reply, request)
        except DialectError as error:
            return Candidate("", None, raw, str(error), version=version)
        return Candidate(reply.text, actions[0], raw, version=version, more=actions[1:])

    def _actions(self, reply: Reply, request: PolicyRequest) -> tuple[Action, ...]:
        if not reply.calls:
            if reply.cut or not reply.text:
                why = reply.cut or "it has neither a call nor a word"
                raise ParseError(f"the answer is no action and no end: {why}")
            return (Finish(reply.text),)  # the end is a message without a call
        state = State().after(*(step.action for step in request.history))
        return read_all(self.dialect, reply.calls, frame_of(request.observation), state)


def _numbered(request: PolicyRequest) -> list[tuple[int, Step]]:
    return list(enumerate(request.history, start=request.dropped + 1))


def _done(dialect: ToolDialect, number: int, step: Step) -> str:
    """Return a past step as the model writes it, in words where it has no call for it."""
    frame = frame_of(step.observation)
    try:
        calls = dialect.write(step.action, frame, State())
        what = " ".join(json.dumps(call, ensure_ascii=False) for call in calls)
    except LossyConversion:
        what = describe(step.action, frame)
    failed = f"(failed: {short(step.error)})" if step.error else ""
    return " ".join(filter(None, (f"{number}.", *step.thought.split(), what, failed)))


def _examples(dialect: ToolDialect, frame: Frame) -> list[str]:
    """Return the calls that a prompt shows: the dialect itself says how they are written."""
    x, y = frame.centre
    lines = []
    for action in (
        Click(x, y), Click(x, y, count=2), Click(x, y, "right"), Type("text"),
        Type("text", submit=True), Hotkey(("ctrl", "c")), Hotkey(("enter",)), Scroll(x, y, 0, 5),
        Drag(((x, y), (x // 2, y))), Wait(1000), Wait(2000), Finish(), Finish("the answer"),
    ):  # fmt: skip
        try:
            calls = dialect.write(action, frame, State())
        except LossyConversion:
            continue
        lines += [json.dumps(call, ensure_ascii=False) for call in calls]
    return lines
