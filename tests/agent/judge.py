"""Episodes to judge, and a judging model on a real port that answers as a test says."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from trajectory import Actor, Click, Element, Finish, Observation, Outcome, Step, Trajectory

PIXEL = b"\x89PNG\r\n\x1a\n"


def episode(*, answer="", reward=None, thought="I click Buy.", page="Buy", steps=3, **extra):
    """Return an episode of some clicks and a Finish; `page` is a name that the page wrote."""
    seen = [
        Observation(f"{n:064x}", 640, 480, (Element("button", page, (10, 10, 40, 20)),), url="shop")
        for n in range(1, steps + 1)
    ]
    done = [
        Step(n, observation, thought, Click(20, 20), Actor.AGENT)
        for n, observation in enumerate(seen[:-1])
    ]
    last = Step(steps - 1, seen[-1], "Done.", Finish(answer), Actor.AGENT)
    values = {"task": "shop/buy", "instruction": "Buy the blue lamp.", "outcome": Outcome.FINISHED}
    return Trajectory(id="e1", steps=(*done, last), reward=reward, **{**values, **extra})


class Judge:
    """An OpenAI-shaped server; `answer(token, body)` gives its text or (status, body)."""

    def __init__(self, answer):
        self.answer, self.bodies = answer, []
        judge = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                judge.bodies.append(body)
                said = judge.answer(token_in(body), body)
                status, reply = said if isinstance(said, tuple) else (200, shaped(said))
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def shaped(text):
    return {"model": "judge-1", "choices": [{"message": {"content": text}}]}


def text_of(body):
    """Return the words of the user's message."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] for part in content if part["type"] == "text")


def token_in(body):
    return re.search(r"begins with: Verdict ([0-9a-f]{16}):", text_of(body))[1]


def says(word, *, evidence="Evidence: step 1: a button."):
    """Return an answer in the form asked for, with the token of the question."""

    def answer(token, body):
        middle = f"{evidence}\n" if "Evidence" in body["messages"][0]["content"] else ""
        return f"Reason: because.\n{middle}Verdict {token}: {word}"

    return answer
