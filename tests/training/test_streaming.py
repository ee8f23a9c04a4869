"""A run's rollout, and what its supervisor carries: episodes one way, weights the other."""

from __future__ import annotations

import json

import pytest

from agent.models import Deployment
from tests.training.rollout_toys import (  # noqa: F401
    Clicker,
    PaperPages,
    play_all,
    toys,
    worker,
)
from training.data.stream_rows import Reader
from training.errors import BadConfig
from training.models import Checkpoint, Episode, Rollout, Run
from training.presets import presets_of
from training.rollouts import episodes, rollouts
from training.streaming import begin, plan, servers
from training.streaming.feeder import Feeder, close
from training.streaming.tokens import Unlearnable

pytestmark = [pytest.mark.usefixtures("toys"), pytest.mark.django_db]

MANIFEST = {"format": 1, "dialect": "element", "observation": "elements"}
TASKS = [("toys", "n1"), ("toys", "n2")]
State = Rollout.State


@pytest.fixture
def make(db, tmp_path):
    base = Checkpoint.objects.create(version="box", uri="/nowhere", manifest=MANIFEST)

    def make(*, tasks=TASKS, deployment=None, name="rl", manifest=MANIFEST, **config) -> Run:
        Checkpoint.objects.filter(pk=base.pk).update(manifest=manifest)
        small = {"updates": 3, "batch": 4, "group": 2, "staleness": 1}
        run = Run.objects.create(
            name=name, kind="ppo", base=Checkpoint.objects.get(), deployment=deployment,
            config=presets_of("ppo")["UI-TARS-2"] | small | config,
        )  # fmt: skip
        begin(run, tasks=tasks)
        return run

    return make


class PaperServer:
    """Stands for the policy server: remembers what it was told; `down` says why it does not answer."""

    def __init__(self, monkeypatch):
        self.told: list[str] = []
        self.down: Exception | None = None
        self.stopped = 0
        monkeypatch.setattr(servers, "ensure", self.ensure)
        monkeypatch.setattr(servers, "stop", self.stop)

    def ensure(self, folder, uri, version):
        if self.down:
            raise self.down
        if version not in self.told:
            self.told.append(version)
        return "http://127.0.0.1:1234"

    def stop(self, folder):
        self.stopped += 1


@pytest.fixture
def server(monkeypatch):
    return PaperServer(monkeypatch)


@pytest.fixture
def feed(make, server, tmp_path):
    """A feeder of a small run."""

    def feed(**config) -> Feeder:
        return Feeder(make(**config), tmp_path)

    return feed


def rollout_of(feeder: Feeder) -> Rollout:
    return Rollout.objects.get(pk=feeder.run.rollout_id)


def stream(feeder: Feeder) -> tuple[list[int], bool]:
    reader = Reader(feeder.directory)
    return [episode.sequence for episode in reader.new()], reader.ended


def serve(feeder: Feeder, update: int) -> None:
    folder = feeder.directory / "served" / f"step-{update}"
    folder.mkdir(parents=True)
    (folder / "tandem.json").write_text("{}")


def play(n: int, version: str = "rl-step-0", pages: PaperPages | None = None) -> None:
    """Play at most `n` episodes that are admitted now."""
    play_once(worker(pages, policy=Clicker(version=lambda: version), environments=n))


def play_once(player) -> None:
    """Play what a worker takes at one time."""
    player._begin(0)
    while player.running:
        player._wake.wait(0.01)
        player._take_results()


# -- the plan ------------------------------------------------------------------------------------


def test_a_run_gets_its_rollout_with_groups_side_by_side_and_tasks_in_turn(make):
    run = make()
    rollout = Rollout.objects.get(pk=run.rollout_id)
    assert (rollout.purpose, rollout.state, rollout.total) == ("train", State.PAUSED, 12)
    assert rollout.config["staleness"] == 1 and rollout.config["batch"] == 4
    assert rollout.config["every_reply"] and rollout.config["top_p"] == 1
    rows = list(rollout.episodes.values_list("task", "seed", "repeat"))
    first = rows[0][1]
    assert first >= plan.FIRST_SEED
    assert rows[:6] == [
        ("n1", first, 0), ("n1", first, 1), ("n2", first, 0), ("n2", first, 1),
        ("n1", first + 1, 0), ("n1", first + 1, 1),
    ]  # fmt: skip
    own = run.deployment
    assert (own.name, own.kind, own.reads, own.coordinates) == (
        "rl-rl",
        "local",
        "elements",
        "frame",
    )
    assert own.base_url  # none would mean the server that annotators talk to


def test_the_list_of_episodes_goes_on_where_it_ended(make):
    whole = list(plan.episodes_of(TASKS, 20, group=4, seed=3))
    assert len(set(whole)) == 20
    rest = list(plan.episodes_of(TASKS, 13, group=4, seed=3, after=7))
    assert whole[7:] == rest
    assert whole != list(plan.episodes_of(TASKS, 20, group=4, seed=4))


def test_what_can_not_play_for_a_run_is_refused_by_field(make):
    def refused(field: str, says: str, **changed) -> None:
        with pytest.raises(BadConfig) as error:
            make(name=f"bad-{Run.objects.count()}", **changed)
        assert list(error.value.errors) == [field] and says in error.value.errors[field]

    def local(name, **changed):
        return Deployment.objects.create(
            name=name, **{"kind": "local", "reads": "elements", "dialect": "element",
                          "base_url": "http://there:1"} | changed
        )  # fmt: skip

    refused("tasks", "at least one", tasks=[])
    refused("tasks", "n99", tasks=[("toys", "n99")])
    refused("staleness", "correction", ratio_cap=0)
    refused("base", "observation", manifest={"dialect": "element"})
    refused("deployment", "server of its own", deployment=local("a", base_url=""))
    refused("deployment", "server of its own", deployment=local("b", kind="openai"))
    refused("deployment", "beside the annotators", deployment=local("c", is_partner=True))
    refused("deployment", "uses 'screenshot'", deployment=local("d", reads="screenshot"))
    shared = local("e")
    make(name="first", deployment=shared)
    refused("deployment", "plays for first now", deployment=shared)


# -- the feeder ----------------------------------------------------------------------------------


def test_a_whole_run_every_episode_once_and_new_weights_before_new_episodes(feed, server):
    feeder = feed(staleness=0)
    feeder.tick()
    rollout = rollout_of(feeder)
    assert rollout.state == State.RUNNING and server.told == ["rl-step-0"]
    assert Deployment.objects.get(pk=feeder.run.deployment_id).version == "rl-step-0"
    fed = []
    for update in range(3):
        play(8)  # a batch of 4, and no more: nothing may run ahead of the trainer
        feeder.tick()
        fed, over = stream(feeder)
        assert len(fed) == 4 * (update + 1)
        assert over is False
        serve(feeder, update + 1)
        feeder.tick()
    assert server.told == ["rl-step-0", "rl-step-1", "rl-step-2"]  # nobody plays with the last
    assert stream(feeder) == (fed, True)
    assert fed == [row.sequence for row in episodes.finished(rollout=rollout)]
    assert set(rollout.episodes.values_list("staleness", flat=True)) == {0}
    feeder.tick()
    assert stream(feeder) == (fed, True)


def test_weights_are_forgotten_but_for_the_last_and_the_version_never_falls(feed, server):
    feeder = feed(staleness=4)
    for update in (1, 2, 3):
        serve(feeder, update)
    feeder.tick()
    assert server.told == ["rl-step-3"] and rollout_of(feeder).version == 3
    assert sorted(p.name for p in (feeder.directory / "served").iterdir()) == ["step-2", "step-3"]
    assert rollouts.advance(rollout_of(feeder), to=1) == 3
    assert feeder.newest() == (3, "rl-step-3", str(feeder.directory / "served" / "step-3"))


def test_who_comes_next_goes_on_after_the_last_whole_line(feed, tmp_path):
    feeder = feed(staleness=4)
    feeder.tick()
    play(5)
    feeder.tick()
    file = tmp_path / "stream.jsonl"
    whole = stream(feeder)
    file.write_bytes(file.read_bytes()[:-9])  # killed in the middle of a line
    another = Feeder(feeder.run, tmp_path)
    another.tick()
    assert stream(feeder) == whole
    play(3)
    feeder.tick()  # the old one still lives: each looks where the file stands
    another.tick()
    assert stream(feeder)[0] == [row.sequence for row in episodes.finished()]
    elsewhere = tmp_path / "another-machine"
    elsewhere.mkdir()
    Feeder(feeder.run, elsewhere).tick()
    assert (elsewhere / "stream.jsonl").read_bytes() == file.read_bytes()


def test_a_server_that_is_away_stops_nothing_but_itself_and_what_paused_goes_on(feed, server):
    feeder = feed()
    server.down = servers.NotUp("it is being started")
    feeder.tick()
    rollout = rollout_of(feeder)
    assert rollout.state == State.PAUSED and "is being started" in rollout.error
    server.down = None
    feeder.tick()
    assert rollout_of(feeder).state == State.RUNNING
    rollouts.pause(rollout, reason="the policy can't be reached")
    feeder._resumed_at = 0
    feeder.tick()
    assert rollout_of(feeder).state == State.RUNNING
    rollouts.pause(rollout)  # a person's
    feeder._resumed_at = 0
    feeder.tick()
    assert rollout_of(feeder).state == State.PAUSED


def test_loading_new_weights_keeps_the_old_ones_playing(feed, server):
    feeder = feed()
    feeder.tick()
    serve(feeder, 1)
    server.down = servers.Loading("it loads rl-step-1")
    feeder.tick()
    rollout = rollout_of(feeder)
    assert (rollout.state, rollout.version) == (State.RUNNING, 0)


def test_broken_episodes_are_replaced_until_too_many_break(feed):
    feeder = feed(staleness=4)
    rollout = rollout_of(feeder)
    rollouts.resume(rollout)
    row = rollout.episodes.first()
    rollout.episodes.filter(pk=row.pk).update(state=Episode.State.BROKEN)
    play_all(worker())
    assert rollout_of(feeder).state == State.DONE
    feeder.tick()
    assert rollout_of(feeder).state == State.RUNNING and rollout_of(feeder).total == 13
    assert len(stream(feeder)[0]) == 11 and not stream(feeder)[1]
    play_all(worker())
    feeder.tick()
    feeder.tick()
    assert len(stream(feeder)[0]) == 12 and stream(feeder)[1]

    rollout.episodes.filter(state="done").update(state=Episode.State.BROKEN)
    with pytest.raises(Unlearnable, match="13 of 13 episodes broke"):
        feeder.tick()


def test_an_episode_that_breaks_during_the_look_is_replaced_before_the_stream_ends(
    feed, monkeypatch
):
    feeder = feed(staleness=4)
    rollout = rollout_of(feeder)
    rollouts.resume(rollout)
    last = rollout.episodes.order_by("pk").last()
    rollout.episodes.filter(pk=last.pk).update(state=Episode.State.RUNNING)
    play(11)
    feeder.tick()
    replace = feeder._replace_broken

    def replace_and_break(rollout):
        done = replace(rollout)
        rollout.episodes.filter(pk=last.pk, state="running").update(state=Episode.State.BROKEN)
        rollouts.settle(rollout.pk)
        return done

    monkeypatch.setattr(feeder, "_replace_broken", replace_and_break)
    feeder.tick()
    assert len(stream(feeder)[0]) == 11 and not stream(feeder)[1]
    feeder.tick()
    assert rollout_of(feeder).total == 13 and not stream(feeder)[1]


def test_episodes_without_tokens_fail_with_the_way_out(feed):
    feeder = feed()
    feeder.tick()
    play_once(worker(policy=Untold()))
    with pytest.raises(Unlearnable, match=r"has no token ids.*our own policy server"):
        feeder.tick()


class Untold(Clicker):
    """A policy that does not tell what it sampled."""

    def propose(self, request, k):
        from dataclasses import replace

        return [replace(one, sample=None) for one in super().propose(request, k)]


def test_prompts_with_pictures_come_with_their_messages_and_pictures(feed, tmp_path):
    feeder = feed(
        manifest={"format": 1, "dialect": "point", "observation": "screenshot"}, tasks=[("toys", "n3")]
    )  # fmt: skip
    feeder.tick()
    play(1)
    feeder.tick()
    line = json.loads((tmp_path / "stream.jsonl").read_text())
    parts = [part for message in line["steps"][2]["messages"] for part in message["content"]]
    shown = [part["sha256"] for part in parts if isinstance(part, dict) and part["type"] == "image"]
    assert len(shown) == 3 and (tmp_path / "blobs" / shown[0][:2] / shown[0]).exists()


# -- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "then"),
    [("succeeded", State.DONE), ("failed", State.PAUSED), ("cancelled", State.PAUSED)],
)
def test_what_a_run_had_beside_its_trainer_ends_with_it(feed, server, state, then):
    feeder = feed()
    feeder.tick()
    for _ in range(2):  # it may be done twice
        close(feeder.run, feeder.directory, state)
    rollout = rollout_of(feeder)
    assert rollout.state == then and server.stopped == 2
    if then == State.PAUSED:
        assert state in rollout.error
        Feeder(feeder.run, feeder.directory).tick()  # the run was resumed
        assert rollout_of(feeder).state == State.RUNNING


def test_a_failed_rollout_ends_its_run(feed):
    feeder = feed()
    rollouts.fail(rollout_of(feeder), error="there is no such task")
    with pytest.raises(Unlearnable, match="there is no such task"):
        feeder.tick()
