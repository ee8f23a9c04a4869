"""The HTTP policy against an endpoint that misbehaves: a real server on a real port."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agent.dialects import load
from agent.policies import endpoint as asking
from agent.policies.openai import OpenAIPolicy
from agent.policy import (
    Candidate,
    PolicyBusy,
    PolicyRefused,
    PolicyRequest,
    PolicyUnreachable,
    varied,
)
from trajectory import Click, Observation, Type

SEEN = Observation("a" * 64, 1000, 1000)
REQUEST = PolicyRequest("Do it.", (), SEEN)


class Endpoint:
    """Answers with `replies` in turn: (status, body) or a text; the last one for ever."""

    def __init__(self):
        self.replies, self.bodies, self.headers = [], [], []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                endpoint.headers.append(dict(self.headers))
                endpoint.bodies.append(
                    json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                )
                reply = endpoint.replies[min(len(endpoint.bodies), len(endpoint.replies)) - 1]
                status, body = reply if isinstance(reply, tuple) else (200, reply)
                data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def endpoint(monkeypatch):
    monkeypatch.setattr(asking, "BACKOFF_S", 0.001)
    endpoint = Endpoint()
    yield endpoint
    endpoint.server.shutdown()
    endpoint.server.server_close()


def _policy(url, **options):
    return OpenAIPolicy(
        url=url,
        model="ui-tars",
        dialect=load("box", "thousandth"),
        observation_kind="screenshot",
        pictures=lambda sha: b"png of " + sha[:1].encode(),
        **options,
    )


def _answer(*texts, model="v1"):
    return {"model": model, "choices": [{"message": {"content": text}} for text in texts]}


CLICK = "Thought: a\nAction: click(start_box='(1,2)')"


def test_pictures_travel_as_data_urls(endpoint):
    endpoint.replies = [_answer(CLICK)]
    (candidate,) = _policy(endpoint.url, token="secret").propose(REQUEST, 1)
    assert candidate.action == Click(1, 2) and candidate.version == "v1"
    assert endpoint.headers[0]["Authorization"] == "Bearer secret"
    part = endpoint.bodies[0]["messages"][-1]["content"][0]
    assert base64.b64decode(part["image_url"]["url"].split(",")[1]) == b"png of a"
    assert "greedy_first" not in endpoint.bodies[0]


def test_the_same_candidate_twice_is_one_and_what_is_unreadable_is_kept(endpoint):
    endpoint.replies = [_answer(CLICK, "what?", CLICK, "Action: type(content='x')")]
    candidates = _policy(endpoint.url).propose(REQUEST, 4)
    assert [c.action for c in candidates] == [Click(1, 2), None, Type("x")]
    assert candidates[1].raw == "what?" and "Action:" in candidates[1].error


def test_an_endpoint_that_ignores_n_is_asked_again(endpoint):
    endpoint.replies = [_answer(CLICK), _answer("Action: wait()")]
    assert len(_policy(endpoint.url).propose(REQUEST, 2)) == 2
    assert [body["n"] for body in endpoint.bodies] == [2, 1]


@pytest.mark.parametrize("status", [429, 503])
def test_busy_is_waited_out(endpoint, status):
    endpoint.replies = [(status, {"error": {"message": "later"}}), _answer(CLICK)]
    assert _policy(endpoint.url).propose(REQUEST, 1)[0].action == Click(1, 2)


def test_busy_for_ever_is_named(endpoint):
    endpoint.replies = [(429, {"error": {"message": "later"}})]
    with pytest.raises(PolicyBusy, match="later"):
        _policy(endpoint.url).propose(REQUEST, 1)
    assert len(endpoint.bodies) == asking.ATTEMPTS


def test_a_refusal_is_not_tried_again(endpoint):
    endpoint.replies = [(400, {"error": {"message": "too long"}})]
    with pytest.raises(PolicyRefused, match="too long"):
        _policy(endpoint.url).propose(REQUEST, 1)
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize("reply", ["<html>", {"choices": []}, [1]])
def test_nonsense_is_named(endpoint, reply):
    endpoint.replies = [reply]
    with pytest.raises(PolicyRefused, match="answered"):
        _policy(endpoint.url).propose(REQUEST, 1)


def test_nobody_there_is_named(endpoint):
    endpoint.server.shutdown()
    endpoint.server.server_close()
    with pytest.raises(PolicyUnreachable, match="can't be reached"):
        _policy(endpoint.url).propose(REQUEST, 1)


def test_silence_is_named():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(PolicyUnreachable, match=r"did not answer in 0\.1 s"):
            _policy(url, timeout_s=0.1).propose(REQUEST, 1)


def test_other_actions_come_before_other_words_for_the_same():
    said = [
        Candidate("a", Click(1, 2), "a"),
        Candidate("b", Click(1, 2), "b"),
        Candidate("", None, "?", "unreadable"),
        Candidate("c", Type("x"), "c"),
        Candidate("a", Click(1, 2), "a"),
    ]
    assert [c.raw for c in varied(said, 3)] == ["a", "c", "b"]
    assert [c.raw for c in varied(said, 9)] == ["a", "c", "b", "?"]
