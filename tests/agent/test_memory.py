"""Memory: what leaves the working memory is kept in words, and a prompt fits to the token."""

import base64
import dataclasses
import io

import pytest
from PIL import Image
from starlette.testclient import TestClient

import trajectory
from agent.dialects import load
from agent.loop import run
from agent.memory import ByChat, InWords, Memory, OverBudget, again
from agent.policies import counting, endpoint
from agent.policies.openai import OpenAIPolicy
from agent.policies.scripted import ScriptedPolicy
from agent.policy import PolicyRequest, Size
from agent.render import pictures_of, render_request
from training.data.rows import PromptFormat, rows
from trajectory import (
    Actor,
    Click,
    Element,
    Observation,
    Outcome,
    Recall,
    Step,
    Summary,
    Trajectory,
    Type,
)

OK = Element("button", "ok", (0, 0, 50, 50))
SEEN = Observation("f" * 64, 200, 120, (OK, Element("textbox", "name", (60, 0, 50, 20))))


def _step(index, action=None, error="", recall=None):
    seen = dataclasses.replace(SEEN, screenshot=f"{index:064x}")
    action = action or Type(f"word {index}")
    return Step(index, seen, f"Thought {index}.", action, Actor.AGENT, error=error, recall=recall)


def _request(count, **fields):
    return PolicyRequest("Do it.", tuple(_step(n) for n in range(count)), SEEN, **fields)


# -- W and E ---------------------------------------------------------------------------------------


def test_nothing_changes_while_an_episode_is_short():
    request = _request(50)
    recalled = Memory().recall(request)
    assert recalled.request == request
    assert recalled.recall == Recall()


def test_what_overflows_leaves_together_and_is_written_once():
    memory, history, written = Memory(steps=4, together=2), [], []
    for index in range(10):
        request = PolicyRequest("Do it.", tuple(history), SEEN)
        recalled = memory.recall(request)
        shown = recalled.request
        assert len(shown.history) <= 4
        assert shown.dropped + len(shown.history) == index
        written += recalled.recall.written
        covered = recalled.recall.episodic.count('type "word') + len(shown.history)
        assert covered == index  # every step is in W or in E, none in both
        assert memory.recall(request) == recalled
        history.append(_step(index, recall=recalled.recall))
    assert [(s.first, s.last) for s in written] == [(0, 1), (2, 3), (4, 5)]
    assert all(s.by == "words" for s in written)


def test_many_summaries_become_fewer_and_still_cover_all():
    recalled = Memory(steps=1, together=1).recall(_request(40))
    spans = [(s.first, s.last) for s in recalled.recall.written]
    assert len(spans) <= 6
    assert [n for first, last in spans for n in range(first, last + 1)] == list(range(39))
    assert recalled.recall.episodic.startswith("Steps 1-")


def test_a_summary_in_words_tells_failures_and_repetitions():
    steps = [_step(0, Click(10, 10)), _step(1, Click(10, 10)), _step(2, error="outside")]
    text, by = InWords().summarise("x", "", steps)
    assert text == 'click button "ok" (2 times); type "word 2" (failed: outside)'
    assert by == "words"


def test_the_model_writes_the_summary_and_silence_is_replaced():
    asked = []

    def ask(messages, max_tokens):
        asked.append(messages[0]["content"])
        return ("He typed\ntwo words.", "v7") if len(asked) == 1 else (" ", "v7")

    memory = Memory(steps=2, together=1, summariser=ByChat(ask))
    recalled = memory.recall(_request(4))
    assert recalled.recall.written == (
        Summary(0, 0, "He typed two words.", "v7"),
        Summary(1, 1, 'type "word 1"', "words"),
    )
    assert "Task: Do it." in asked[0] and 'Thought 0. -> type "word 0"' in asked[0]
    assert "Before:\nStep 1: He typed two words." in asked[1]


# -- the budget ------------------------------------------------------------------------------------


def _measure(kind):
    """Count one token per character, and 1000 per picture."""

    def measure(request):
        messages = render_request(
            request, dialect=load("box" if kind == "screenshot" else "element"),
            observation_kind=kind,
        )  # fmt: skip
        pictures = len(pictures_of(messages))
        texts = sum(len(m["content"]) for m in messages if isinstance(m["content"], str))
        return Size(texts + 1000 * pictures, pictures)

    return measure


@pytest.mark.parametrize("kind", ["elements", "screenshot"])
def test_a_prompt_fits_whatever_the_budget_or_says_that_it_can_not(kind):
    measure, request = _measure(kind), _request(12)
    most = measure(request).tokens
    least = measure(dataclasses.replace(request, history=(), pictures=1)).tokens
    for budget in range(least, most, max((most - least) // 60, 1)):
        recalled = Memory(budget=budget, measure=measure, together=2).recall(request)
        assert measure(recalled.request).tokens == recalled.recall.prompt_tokens <= budget
        assert recalled.request.observation == SEEN
    with pytest.raises(OverBudget, match=f"{least} tokens, the budget is {least - 1}"):
        Memory(budget=least - 1, measure=measure).recall(request)
    untouched = Memory(budget=most, measure=measure).recall(request)
    assert untouched.request == request


def test_steps_without_a_picture_go_first_then_pictures_then_the_rest():
    measure, request = _measure("screenshot"), _request(12)
    seen = []
    for budget in range(measure(request).tokens, 1000, -40):
        try:
            recalled = Memory(budget=budget, measure=measure, together=1).recall(request)
        except OverBudget:
            break
        pictures = measure(recalled.request).pictures
        seen.append((pictures, len(recalled.request.history)))
    assert seen == sorted(seen, reverse=True)  # neither ever comes back
    assert min(n for pictures, n in seen if pictures == 5) == 4
    assert min(n for pictures, n in seen if pictures > 1) == 4
    assert seen[-1] == (1, 0)


def test_a_budget_without_a_count_is_refused():
    with pytest.raises(ValueError, match="measure"):
        Memory(budget=100)


# -- training sees what the model saw --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["elements", "screenshot"])
def test_a_row_is_what_was_sent(kind):
    dialect = load("element" if kind == "elements" else "point")
    sent = []

    class Scripted:
        def propose(self, request, k):
            messages = render_request(
                request, dialect=dialect, observation_kind=kind, history_n=3
            )  # fmt: skip
            sent.append(messages)
            (candidate,) = ScriptedPolicy(script, dialect).propose(request, k)
            return [dataclasses.replace(candidate, pictures=len(pictures_of(messages)))]

    script = [{"thought": f"T{n}", "action": {"type": "type", "text": f"{n}"}} for n in range(9)]

    class Paper:
        def observe(self):
            return dataclasses.replace(SEEN, screenshot=f"{len(sent) + 1:064x}")

        def act(self, action):
            pass

    measure = _measure(kind)
    budget = measure(_request(0)).tokens + (2300 if kind == "screenshot" else 120)
    memory = Memory(steps=5, together=2, budget=budget, measure=measure)
    steps = list(run("Do it.", Paper(), Scripted(), max_steps=9, memory=memory))
    value = Trajectory("t", "t", "Do it.", tuple(steps), Outcome.FINISHED)
    (value,) = trajectory.load_lines(trajectory.dump_lines([value]))
    assert any(step.recall.episodic for step in value.steps)
    form = PromptFormat(dialect.name, kind, history_n=5)  # another than the policy's
    assert [row.messages for row in rows([value], form)] == sent


def test_a_step_without_a_record_is_rendered_as_the_workbench_asks():
    steps = [_step(n) for n in range(60)]
    request = again("Do it.", steps, 59)
    asked = dataclasses.replace(_request(59), observation=steps[59].observation)
    assert request == Memory().recall(asked).request
    assert request.dropped == 10 and request.summary.startswith("Steps 1-10: ")


# -- who counts ------------------------------------------------------------------------------------


def _png(width, height):
    out = io.BytesIO()
    Image.new("RGB", (width, height), "white").save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def through(monkeypatch):
    """Answer the policy's HTTP by an application in this process."""

    def connect(app):
        client = TestClient(app)
        monkeypatch.setattr(endpoint, "_client", lambda timeout_s: client)

    return connect


@pytest.mark.parametrize("name", ["tiny_llama", "tiny_qwen3_vl"])
@pytest.mark.usefixtures("one_thread")
def test_our_server_counts_to_the_token(request, tmp_path, through, name):
    from agent.serving.engine import Engine
    from agent.serving.server import create_app

    engine = Engine(tmp_path)
    engine.load(str(request.getfixturevalue(name)), "").result()
    through(create_app(engine))
    sees = name != "tiny_llama"
    form = PromptFormat("point" if sees else "element", "screenshot" if sees else "elements")
    policy = OpenAIPolicy(
        url="http://testserver",
        model="",
        dialect=load(form.dialect),
        observation_kind=form.observation,
        pictures=lambda sha: _png(200, 120),
        ours=True,
        max_tokens=4,
    )
    asked = _request(7)
    whole = policy.measure(asked)
    (candidate, *_) = policy.propose(asked, 1)
    assert whole.exact and whole.pictures == candidate.pictures == (5 if sees else 0)
    assert whole.tokens == candidate.prompt_tokens == len(candidate.sample.prompt_ids)
    budget = whole.tokens - (150 if sees else 50)
    memory = Memory(steps=5, together=2, budget=budget, measure=policy.measure)
    recalled = memory.recall(asked)
    (candidate, *_) = policy.propose(recalled.request, 1)
    kept = recalled.record(candidate)
    assert kept.prompt_tokens == recalled.recall.prompt_tokens <= budget
    # What training tokenises from the stored step is what the server sampled from.
    last = dataclasses.replace(_step(7), observation=SEEN, recall=kept)
    *_, row = rows([Trajectory("t", "t", "Do it.", (*asked.history, last))], form)
    picture = Image.open(io.BytesIO(_png(200, 120))).convert("RGB")
    encoded = engine.current.processor.prompt(row.messages, lambda part: picture)
    assert tuple(encoded.ids) == candidate.sample.prompt_ids


def test_an_endpoint_that_can_not_count_is_estimated_from_above_and_says_so(through):
    from starlette.applications import Starlette

    through(Starlette())
    policy = OpenAIPolicy(
        url="http://counts-nothing",
        model="",
        dialect=load("box"),
        observation_kind="screenshot",
        pictures=lambda sha: base64.b64decode(""),
    )
    size = policy.measure(_request(3))
    assert not size.exact and size.pictures == 4
    assert size.tokens > 4 * counting.picture_tokens(SEEN)
    memory = Memory(budget=10, measure=policy.measure)
    with pytest.raises(OverBudget, match="estimated"):
        memory.recall(_request(3))
