"""The policy server of a chain: started, told another model, given up, stopped."""

# Fixtures come by import, and are named as parameters.
# ruff: noqa: F811

from __future__ import annotations

import datetime as dt
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.utils import timezone

from agent.models import Deployment
from tests.training.iteration_parts import begin, box, now, partner, place, toys, turn  # noqa: F401
from training import jobs
from training.errors import BadConfig
from training.iterations import driver, iterations, serving
from training.models import Iteration
from training.streaming import servers

pytestmark = pytest.mark.django_db
READY = serving.ready


class Server:
    """Answers /health like a policy server, with the model that it was told."""

    def __init__(self):
        self.says, self.calls, self.trouble = {}, [], None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps(outer.says).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def ensure(self, folder, uri, version, **more):
        self.calls.append((folder.name, version))
        if self.trouble:
            raise self.trouble
        self.says = {"status": "ok", "version": version, "checkpoint": uri}
        return self.url

    def load(self, address, uri, version, *, token):
        assert address == self.url
        self.ensure(type("Folder", (), {"name": "chosen"}), uri, version)

    def stop(self, folder):
        self.calls.append((folder.name, "stop"))


@pytest.fixture
def server(monkeypatch):
    server = Server()
    for name in ("ensure", "load", "stop"):
        monkeypatch.setattr(servers, name, getattr(server, name))
    monkeypatch.setattr(serving, "ready", READY)
    keep = jobs.keep_iteration_server
    monkeypatch.setattr(keep, "apply_async", lambda args, **more: serving.keep(args[0]))
    yield server
    server.http.shutdown()
    server.http.server_close()


def test_it_is_started_beside_the_partner_s_and_told_each_model(begin, partner, server):
    row = begin()
    assert not driver.advance(row.pk), "it was only asked for"
    assert server.calls == [("flywheel-iteration-1", "box")]
    row = turn(row)
    assert row.phase == "collect" and row.rollout.deployment == row.server
    assert row.server.base_url == server.url and row.server.version == "box"
    assert (row.server.reads, row.server.dialect) == ("elements", "element")
    assert row.server_host and row.server_since is None
    partner.refresh_from_db()
    assert partner.base_url == "" and partner.version == "box"


def test_it_stops_when_nothing_is_to_be_played(begin, server):
    row = turn(begin())
    row = turn(row)
    iterations.pause(now(row))
    serving.stop_unwanted()
    assert server.calls[-1] == ("flywheel-iteration-1", "stop") and now(row).server_host == ""
    calls = len(server.calls)
    serving.stop_unwanted()
    assert len(server.calls) == calls


def test_only_the_machine_on_which_it_runs_can_stop_it(begin, server):
    row = turn(turn(begin()))
    Iteration.objects.filter(pk=row.pk).update(server_host="elsewhere", state="paused")
    serving.stop_unwanted()
    assert now(row).server_host == "elsewhere" and server.calls[-1][1] != "stop"


def test_a_checkpoint_that_it_refuses_stops_the_iteration_until_a_retry(begin, server):
    server.trouble = servers.CantServe("it holds no weights")
    row = turn(turn(begin()))
    assert row.state == "failed" and row.error == "it holds no weights"
    server.trouble = None
    iterations.retry(row)
    turn(row)
    assert turn(row).phase == "collect"


def test_a_server_that_never_comes_up_is_given_up(begin, server):
    server.trouble = servers.NotUp("it ended: out of memory")
    row = turn(begin())
    assert row.state == "running" and row.server_trouble == "it ended: out of memory"
    long_ago = timezone.now() - serving.PATIENCE - dt.timedelta(seconds=1)
    Iteration.objects.filter(pk=row.pk).update(server_since=long_ago)
    row = turn(row)
    assert row.state == "failed" and "not there after 15 min: it ended: out of memory" in row.error


def test_a_rollout_that_waited_for_the_server_goes_on_with_it(begin, server):
    row = turn(begin())
    row = turn(row)
    row.rollout.state, row.rollout.error = "paused", "the policy is away"
    row.rollout.save()
    server.says = {}
    turn(row)
    assert turn(row).rollout.state == "running"


def test_a_chosen_server_is_told_instead(partner, box, server):
    from tests.training.iteration_parts import CONFIG

    chosen = Deployment.objects.create(
        name="arena", kind="local", reads="elements", dialect="element", base_url=server.url
    )
    row = iterations.begin(deployment=partner, server=chosen, config=CONFIG, by=None)
    row = turn(turn(row))
    assert row.server == chosen and server.calls == [("chosen", "box")] and row.server_host == ""
    with pytest.raises(BadConfig, match="iteration-1 plays with arena at the moment"):
        iterations.begin(deployment=partner, server=chosen, config=CONFIG, by=None)
    with pytest.raises(BadConfig, match="has no policy server with an address"):
        iterations.begin(deployment=partner, server=partner, config=CONFIG, by=None)
