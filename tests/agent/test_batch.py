"""Continuous batching: whoever else is in the batch, every answer is what it would be alone."""

import random
import threading

import pytest
from starlette.testclient import TestClient

from tests.tiny import make_llama

torch = pytest.importorskip("torch")

from agent.serving import server  # noqa: E402
from agent.serving.batch import Batch, Job  # noqa: E402 (behind the skip)
from agent.serving.cache import Prefixes  # noqa: E402
from agent.serving.decoder import open_decoder  # noqa: E402
from agent.serving.engine import Busy, Engine, NotReady  # noqa: E402
from agent.serving.generate import Sampling, generate  # noqa: E402
from agent.serving.scheduler import Scheduler  # noqa: E402
from agent.serving.server import create_app  # noqa: E402

SAMPLINGS = [
    Sampling(max_tokens=9, temperature=0),
    Sampling(n=3, max_tokens=12, seed=3, greedy_first=True),
    Sampling(n=4, max_tokens=15, alternatives=True),
    Sampling(max_tokens=1, seed=5),
    Sampling(n=2, max_tokens=20, seed=9, temperature=1.3, top_p=0.6),
    Sampling(n=5, max_tokens=7, alternatives=True),
    Sampling(max_tokens=30, seed=11),
]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def opened(tiny_llama):
    decoder, processor, _ = open_decoder(str(tiny_llama), exact=True)
    return decoder, processor


def _prompts(processor):
    texts = [
        "hi",
        "click on ok " * 9,
        "x" * 70,
        "click on ok " * 9 + "and more",
        "y",
        "zz",
        "x" * 71,
    ]
    return [processor.prompt([{"role": "user", "content": text}]) for text in texts]


def _same(found, wanted):
    assert [row.ids for row in found] == [row.ids for row in wanted]
    assert [row.finish for row in found] == [row.finish for row in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.mark.parametrize("slots", [1, 6, 32])
@torch.inference_mode()
def test_an_answer_in_a_batch_is_the_answer_alone(opened, slots):
    decoder, processor = opened
    asked = list(zip(_prompts(processor), SAMPLINGS, strict=True)) * 2
    random.Random(slots).shuffle(asked)
    stops = [None, lambda ids: len(ids) > 4]
    alone = [
        generate(decoder, prompt, sampling, processor.eos_ids, stops[at % 2])
        for at, (prompt, sampling) in enumerate(asked)
    ]
    batch, done, most = Batch(decoder, slots), {}, 0
    waiting = list(enumerate(asked))
    while len(done) < len(asked):
        if waiting:
            at, (prompt, sampling) = waiting[0]
            job = Job(
                prompt.ids, sampling, processor.eos_ids, stops[at % 2],
                lambda answers, at=at: done.update({at: answers}), None,
            )  # fmt: skip
            if batch.admits(job):
                waiting.pop(0)
                batch.add(job)
        if batch.rows:
            batch.step()
        most = max(most, batch.rows)
    assert batch.rows == 0 and not batch.jobs
    assert most <= max(slots, 5)  # a request that is alone may have more answers than slots
    assert slots == 1 or most > 5
    for at, wanted in enumerate(alone):
        _same(done[at], wanted)


@torch.inference_mode()
def test_a_prompt_that_begins_like_another_is_read_from_there(opened):
    decoder, processor = opened
    first, second = (
        processor.prompt([{"role": "user", "content": "the same beginning " * 4 + end}])
        for end in ("a", "b")
    )
    batch, done = Batch(decoder, 4), []
    shared = []
    for prompt in (first, second, second):
        job = Job(prompt.ids, Sampling(max_tokens=5, temperature=0), processor.eos_ids, None, done.append, None)  # fmt: skip
        shared.append(batch.add(job))
        while batch.rows:
            batch.step()
    assert shared[0] == 0 and 70 < shared[1] <= shared[2] < len(second.ids)
    for found, prompt in zip(done, (first, second, second), strict=True):
        _same(found, generate(decoder, prompt, Sampling(max_tokens=5, temperature=0), processor.eos_ids))  # fmt: skip


def test_known_prompts_have_a_limit(opened):
    decoder, _ = opened
    cache = decoder.cache()
    cache.fit(1, 100, used=0)
    prefixes = Prefixes(limit=100)
    for token in range(3):
        prefixes.keep([token] * 40, cache, 0)
    assert prefixes.find([0] * 40, cache, 0) == 0  # the oldest made room
    assert prefixes.find([1] * 40, cache, 0) == 39
    prefixes.keep([7] * 101, cache, 0)
    assert prefixes.find([7] * 101, cache, 0) == 0


@torch.inference_mode()
def test_a_long_prompt_waits_rather_than_pads_everybody(opened, monkeypatch):
    decoder, processor = opened
    monkeypatch.setattr("agent.serving.batch.MAX_CELLS", 400)
    batch = Batch(decoder, 8)

    def job(tokens):
        return Job([1] * tokens, Sampling(max_tokens=10), processor.eos_ids, None, print, None)

    assert batch.admits(job(900))
    batch.add(job(100))
    assert batch.admits(job(150)) and not batch.admits(job(300))


# -- the engine ------------------------------------------------------------------------------------


def _engine(folder, tmp_path, **options):
    engine = Engine(tmp_path, exact=True, **options)
    engine.load(str(folder), "v1").result()
    return engine


def _submit(engine, content="hello", **sampling):
    messages = [{"role": "user", "content": content}]
    return engine.submit(messages, Sampling(**sampling), picture=lambda part: None)


def test_many_at_once_get_what_each_gets_alone(tiny_llama, tmp_path):
    one, many = (_engine(tiny_llama, tmp_path / str(n), slots=n) for n in (1, 8))
    asked = [(f"prompt {n % 5} " * n, {"n": 1 + n % 3, "max_tokens": 4 + n, "seed": n}) for n in range(12)]  # fmt: skip
    together = [_submit(many, content, **how) for content, how in asked]
    answers = [future.result(60) for future in together]
    load = many.busyness()  # now: its rates forget what was ten seconds ago
    for found, (content, how) in zip(answers, asked, strict=True):
        wanted = _submit(one, content, **how).result(60)
        assert found.texts == wanted.texts and found.prompt_ids == wanted.prompt_ids
    assert (load.slots, load.waiting, load.requests) == (8, 0, 12)
    assert load.batch > 1.5 and load.tokens_per_s > 0 and load.shared_tokens > 0
    assert one.busyness().tokens == load.tokens


def test_running_requests_keep_their_model(tiny_llama, tmp_path, monkeypatch):
    other = make_llama(tmp_path / "other", seed=7)
    engine = _engine(tiny_llama, tmp_path / "state", slots=2)
    step, both, loaded = Batch.step, threading.Event(), threading.Event()

    def held(batch):
        if batch.rows == 2:
            both.set()
            loaded.wait(60)
        step(batch)

    monkeypatch.setattr(Batch, "step", held)
    running = [_submit(engine, max_tokens=200, temperature=0) for _ in range(2)]
    assert both.wait(60)
    engine.load(str(other), "v2").result()
    loaded.set()
    later = _submit(engine, max_tokens=5, temperature=0)
    assert later.result(30).version == "v2"
    assert {future.result(60).version for future in running} == {"v1"}


def test_a_bad_request_harms_nobody(tiny_llama, tmp_path):
    engine = _engine(tiny_llama, tmp_path, slots=4)
    good = _submit(engine, max_tokens=50, temperature=0)
    bad = _submit(engine, "x" * 5000)
    again = _submit(engine, max_tokens=50, temperature=0)
    with pytest.raises(ValueError, match="limit"):
        bad.result(30)
    assert good.result(30).texts == again.result(30).texts


def test_a_step_that_fails_is_named_and_the_next_request_is_answered(
    tiny_llama, tmp_path, monkeypatch
):
    engine = _engine(tiny_llama, tmp_path, slots=4)
    monkeypatch.setattr(Batch, "step", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        _submit(engine, max_tokens=9, temperature=0).result(30)
    monkeypatch.undo()
    assert len(_submit(engine, max_tokens=9, temperature=0).result(30).texts) == 1


def test_too_many_requests_are_refused_at_once(tiny_llama, tmp_path, monkeypatch):
    engine = Engine(tmp_path, slots=1, max_waiting=1)
    with pytest.raises(NotReady):
        _submit(engine)
    engine.load(str(tiny_llama), "v1").result()
    monkeypatch.setattr(Scheduler, "submit", lambda self, asked: None)
    first, second = _submit(engine), _submit(engine)
    with pytest.raises(Busy, match="2 requests are being answered or wait"):
        _submit(engine)
    first.cancel()
    assert _submit(engine) is not second


def test_the_numbers_are_on_two_pages(tiny_llama, tmp_path):
    engine = _engine(tiny_llama, tmp_path, slots=3)
    _submit(engine, max_tokens=4, temperature=0).result(30)
    with TestClient(create_app(engine)) as client:
        health = client.get("/health").json()
        assert (health["slots"], health["requests"], health["tokens"]) == (3, 1, 4)
        assert "tandem_slots 3\n" in client.get("/metrics").text


def test_a_body_that_is_no_request_or_has_no_end_is_refused(tiny_llama, tmp_path, monkeypatch):
    monkeypatch.setattr(server, "MAX_BODY", 10_000)
    with TestClient(create_app(_engine(tiny_llama, tmp_path))) as client:

        def told(content):
            answer = client.post("/v1/chat/completions", content=content)
            assert answer.status_code == 400
            return answer.json()["error"]["message"]

        assert "each of the messages" in told(b'{"messages": ["hello"]}')
        assert "not JSON" in told(b"[" * 9_999)
        # Sent in pieces, with no length stated.
        assert "larger than 10000" in told(iter([b" " * 1000] * 11))
