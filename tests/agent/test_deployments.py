"""Deployments: one partner, and a server that is told until it agrees."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agent import deployments, jobs
from agent.models import Deployment
from agent.policy import PolicyRefused, PolicyUnreachable

pytestmark = pytest.mark.django_db


class PolicyServer:
    """Speaks /health and /v1/load as the real one does, and notes what it was told."""

    def __init__(self):
        self.serves = {"version": "", "checkpoint": "", "loading": ""}
        self.loads, self.tokens, self.refuse = [], [], ""
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.answer(200, told.serves)

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                told.loads.append(body)
                told.tokens.append(self.headers.get("Authorization"))
                if told.refuse:
                    self.answer(422, {"error": {"message": told.refuse}})
                else:
                    told.serves |= body
                    self.answer(200, told.serves)

            def answer(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server(settings):
    server = PolicyServer()
    settings.POLICY_URL, settings.POLICY_TOKEN = server.url, "token"
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture(autouse=True)
def queued(monkeypatch):
    """Count the jobs instead of sending them: there is no broker here."""
    queued = []
    monkeypatch.setattr(jobs.reconcile, "apply_async", lambda **options: queued.append(options))
    return queued


def _deployment(name, **fields):
    return Deployment.objects.create(name=name, **fields)


def test_there_is_one_partner(queued, django_capture_on_commit_callbacks):
    with pytest.raises(deployments.NoPartner, match="admin"):
        deployments.partner()
    first, second = _deployment("first"), _deployment("second")
    with django_capture_on_commit_callbacks(execute=True):
        deployments.set_partner(first)
        deployments.set_partner(second)
    assert deployments.partner() == second
    assert Deployment.objects.filter(is_partner=True).count() == 1
    assert queued


def test_pointing_at_a_checkpoint_is_told_after_the_commit(
    server, queued, django_capture_on_commit_callbacks
):
    box = _deployment("box")
    with django_capture_on_commit_callbacks(execute=True):
        deployments.point_at(box, checkpoint_uri="file:///a", version="v2")
    assert len(queued) == 1
    jobs.reconcile()
    assert server.loads == [{"checkpoint": "file:///a", "version": "v2"}]
    assert server.tokens == ["Bearer token"]
    jobs.reconcile()  # it agrees now
    assert len(server.loads) == 1


def test_a_server_that_loads_already_is_left_alone(server):
    box = _deployment("box", checkpoint_uri="file:///a", version="v2")
    server.serves["loading"] = "v2"
    assert deployments.reconcile(box) is False
    assert not server.loads


def test_the_partner_decides_where_two_share_a_server(server):
    _deployment("old", checkpoint_uri="file:///a", version="v1", is_partner=True)
    _deployment("new", checkpoint_uri="file:///b", version="v2")
    deployments.reconcile_all()
    assert [load["version"] for load in server.loads] == ["v1"]


def test_only_our_own_server_loads_checkpoints():
    hosted = _deployment("hosted", kind="openai", base_url="http://127.0.0.1:1")
    with pytest.raises(ValueError, match="loads no checkpoints"):
        deployments.point_at(hosted, checkpoint_uri="file:///a", version="v2")


def test_what_goes_wrong_is_named_and_the_job_survives_it(server, caplog):
    box = _deployment("box", checkpoint_uri="file:///a", version="v2")
    server.refuse = "there is no folder /a"
    with pytest.raises(PolicyRefused, match="no folder"):
        deployments.reconcile(box)
    jobs.reconcile()
    assert "no folder" in caplog.text
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(PolicyUnreachable):
        deployments.reconcile(box)
    jobs.reconcile()


def test_a_server_that_says_nothing_holds_up_no_job(settings, monkeypatch):
    monkeypatch.setattr(deployments, "HEALTH_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        settings.POLICY_URL = f"http://127.0.0.1:{mute.getsockname()[1]}"
        box = _deployment("box", checkpoint_uri="file:///a", version="v2")
        with pytest.raises(PolicyUnreachable, match="ReadTimeout"):
            deployments.reconcile(box)


def test_a_deployment_becomes_a_policy(server, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "k")
    local = deployments.policy(_deployment("box"), pictures=lambda sha: b"")
    assert (local.url, local.token, local.ours) == (server.url, "token", True)
    hosted = _deployment(
        "h", kind="openai", base_url="http://h.example/v1", api_key_variable="SOME_KEY"
    )
    policy = deployments.policy(hosted, pictures=lambda sha: b"")
    assert (policy.url, policy.token, policy.ours) == ("http://h.example/v1", "k", False)
