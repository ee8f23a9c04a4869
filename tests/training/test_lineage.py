"""From a checkpoint back to people and forward to its uses: the graph, its picture, its page."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from django.urls import reverse

from agent.models import Deployment
from tests.training.sessions import make_session
from tests.training.test_sampling import play, rollout
from training.data import datasets
from training.data.selection import Filters
from training.lineage import Edge, Graph, Key, Node, draw, graph_of
from training.lineage.graph import downstream, upstream
from training.lineage.layout import HEIGHT, WIDTH, layered, short
from training.models import Checkpoint, Evaluation, MergeSource, MixedDataset, Run
from training.weights import promotions

MANIFEST = {"format": 1, "dialect": "element", "observation": "elements"}


def checkpoint(version: str, **values) -> Checkpoint:
    return Checkpoint.objects.create(version=version, uri="s3://c", manifest=MANIFEST, **values)


def train(name: str, base: Checkpoint | None, *, steps=(1,), **values) -> Checkpoint:
    """Make a run and its checkpoints; returns the last one."""
    run = Run.objects.create(name=name, base=base, state="succeeded", **values)
    made = [checkpoint(f"{name}-step-{n}", run=run, parent=base, step=n) for n in steps]
    return made[-1]


def freeze(name: str, pool="sft", **filters):
    return datasets.freeze(name=name, pool=pool, filters=Filters(**filters), by=None)


def named(graph: Graph) -> set[str]:
    return {node.label for node in graph.nodes}


def said(graph: Graph) -> set[tuple[str, str, str]]:
    labels = {node.key: node.label for node in graph.nodes}
    return {(labels[one.source], one.label, labels[one.target]) for one in graph.edges}


# -- walks and layers, pure --------------------------------------------------------------------------


def key(n: int) -> Key:
    return Key("run", n)


def test_walks_follow_the_edges_and_stop_in_circles():
    edges = [Edge(key(1), key(2)), Edge(key(2), key(3)), Edge(key(3), key(1)), Edge(key(4), key(3))]
    assert upstream(edges, [key(2)]) == [key(1), key(3), key(4)]
    assert downstream(edges, [key(4)]) == [key(3), key(1), key(2)]
    assert len(layered([key(n) for n in range(1, 5)], edges)) >= 2


def test_every_edge_leads_to_the_right_and_no_box_covers_another():
    edges = [Edge(key(n), key(2 * n + at)) for n in range(1, 32) for at in (0, 1)]
    edges += [Edge(key(1), key(60)), Edge(key(3), key(50))]
    nodes = tuple(Node(key(n), f"a run with a long name {n}") for n in range(1, 64))
    graph = Graph(key(5), nodes, tuple(edges))
    picture = draw(graph)
    places = {box.node.key: (box.x, box.y) for box in picture.boxes}
    assert len(places) == 63
    assert all(places[one.source][0] + WIDTH < places[one.target][0] for one in edges)
    columns = {x: sorted(y for at, y in places.values() if at == x) for x, _ in places.values()}
    assert all(b - a > HEIGHT for ys in columns.values() for a, b in pairwise(ys))
    lanes = [
        (int(x), int(y))
        for curve in picture.curves
        for x, y in re.findall(r"(\d+) (\d+)H", curve.path)
    ]
    assert len(lanes) == 7
    assert not any(
        x == at and y <= lane <= y + HEIGHT for x, y in places.values() for at, lane in lanes
    )
    assert max(x for x, _ in places.values()) + WIDTH < picture.width
    assert max(y for _, y in places.values()) + HEIGHT < picture.height
    assert [box.node.key for box in picture.boxes if box.here] == [key(5)]
    assert draw(graph) == picture


def test_a_long_chain_is_laid_out_without_recursion():
    edges = [Edge(key(n), key(n + 1)) for n in range(3000)]
    assert len(layered([key(n) for n in range(3001)], edges)) == 3001


def test_a_long_name_is_cut_in_its_middle():
    assert short("sft-clicks-1") == "sft-clicks-1"
    assert short("a" * 30 + "-step-400").endswith("-step-400")
    assert len(short("a" * 99)) == 24


# -- the graph ---------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_it_reaches_back_to_people_rollouts_critics_and_what_was_merged():
    make_session(task="a/1", pseudonym="A-1")
    make_session(task="a/1", pseudonym="A-1")
    make_session(task="a/2", pseudonym="A-2", reward=0.0)
    box = checkpoint("box")
    high, low = freeze("high", task="a/"), freeze("low", "ct", task="a/")
    first = train("first", box, dataset=high)
    run = Run.objects.get(name="first")
    MixedDataset.objects.create(run=run, dataset=low, weight=0.5)
    collected, own = rollout("collected"), rollout("own", "train")
    play(collected, versions=["first-step-1"])
    play(collected, versions=["first-step-1"], seed=1)
    play(own, seed=2)
    critic = train("value", first, kind="value", rollout=collected)
    Checkpoint.objects.filter(pk=critic.pk).update(role="critic")
    sampled = freeze("sampled", source="episodes")
    second = train("second", first, dataset=sampled)
    third = train("third", second, kind="ppo", critic=critic, rollout=own)
    merged = train("merged", None, kind="merge")
    for source, weight in ((first, 0.25), (third, 0.75)):
        MergeSource.objects.create(run=merged.run, checkpoint=source, weight=weight)
    train("elsewhere", box, dataset=high)

    graph = graph_of(Key("checkpoint", merged.pk))
    links = said(graph)
    assert links >= {
        ("box", "base", "first"), ("high", "learns", "first"), ("low", "mixed in, 0.5", "first"),
        ("2 sessions", "", "high"), ("1 session", "", "low"), ("collected", "2 episodes", "sampled"),
        ("first-step-1", "played", "collected"), ("value-step-1", "critic", "third"),
        ("own", "learns", "third"), ("third-step-1", "merged, 0.75", "merged"),
        ("first-step-1", "merged, 0.25", "merged"), ("merged", "", "merged-step-1"),
    }  # fmt: skip
    assert not any("elsewhere" in name for name in named(graph))
    assert (graph.people, graph.sessions) == (("A-1", "A-2"), 3)
    counts = {node.label: node.counts for node in graph.nodes}
    assert counts["2 sessions"] == (("a/1", "A-1", 2),)
    assert counts["collected"] == (("toys/n2", "", 2),)
    assert counts["own"] == (("toys/n2", "", 1),)


@pytest.mark.django_db
def test_it_reaches_forward_to_what_serves_what_was_judged_and_what_it_played():
    make_session()
    box = checkpoint("box")
    partner = Deployment.objects.create(
        name="partner", reads="elements", dialect="element", version="box", is_partner=True
    )
    last = train("first", box, dataset=freeze("high"), steps=(1, 2, 3, 4))
    promotions.promote(last, deployment=partner, by=None)
    judged = rollout("judged", "evaluate")
    test = Evaluation.objects.create(
        name="exam", suite="s", rollout=judged, version=last.version, max_steps=3, reads="elements"
    )
    play(judged, versions=[last.version])
    play(rollout("collected"), versions=[last.version])
    second = train("second", last)

    graph = graph_of(Key("checkpoint", last.pk))
    links = said(graph)
    assert ("first-step-4", "serves now", "partner") in links
    assert ("first-step-4", "evaluated", test.name) in links
    assert ("first-step-4", "played", "collected") in links
    assert ("first-step-4", "base", "second") in links
    assert "judged" not in named(graph)
    assert "first-step-1" not in named(graph)
    from_box = graph_of(Key("checkpoint", box.pk))
    assert {"first-step-4", "second-step-1", "partner", "3 checkpoints"} <= named(from_box)
    promotions.promote(second, deployment=partner, by=None)
    later = {(a, b.split()[0], c) for a, b, c in said(graph_of(Key("checkpoint", box.pk))) if b}
    assert ("first-step-4", "promoted", "partner") in later
    assert ("second-step-1", "serves", "partner") in later


@pytest.mark.django_db
def test_a_session_and_a_dataset_have_one_too():
    session = make_session()
    other = make_session(task="b/1", pseudonym="B-1")
    high = freeze("high", task="miniwob")
    train("first", checkpoint("box"), dataset=high)
    graph = graph_of(Key("session", session.pk))
    assert named(graph) == {f"session {session.pk}", "high", "first", "first-step-1"}
    assert named(graph_of(Key("session", other.pk))) == {f"session {other.pk}"}
    assert named(graph_of(Key("dataset", high.pk))) == {
        "1 session", "high", "first", "first-step-1",
    }  # fmt: skip


@pytest.mark.django_db
def test_a_deep_chain_takes_as_many_queries_as_a_short_one(django_assert_max_num_queries):
    make_session()
    data = freeze("high")
    newest = checkpoint("box")
    for n in range(40):
        newest = train(f"run-{n}", newest, dataset=data, steps=(1, 2))
    with django_assert_max_num_queries(16):
        graph = graph_of(Key("checkpoint", newest.pk))
    assert len([node for node in graph.nodes if node.kind == "checkpoint"]) == 41


@pytest.mark.django_db
def test_what_is_too_far_away_to_be_read_is_counted():
    newest = box = checkpoint("box")
    for n in range(6):
        newest = train(f"run-{n}", newest)
    near = graph_of(Key("checkpoint", box.pk), limit=4)
    assert named(near) == {"box", "run-0", "run-0-step-1", "run-1", "run-1-step-1"}
    assert near.further == 8
    assert graph_of(Key("checkpoint", box.pk), limit=None).further == 0


# -- the page ----------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_page_draws_links_and_says_the_same_in_words(client, admin_user, annotator):
    session = make_session(task="a<b>/1", pseudonym="A-1")
    high = freeze("high")
    made = train("first", checkpoint("box"), dataset=high)
    Checkpoint.objects.filter(pk=made.pk).update(erased_at=made.created_at)
    asked = [("checkpoint", made.pk), ("dataset", high.pk), ("session", session.pk)]
    addresses = [reverse(f"training:{n}", args=one) for one in asked for n in ("lineage", "lineage-json")]  # fmt: skip
    client.force_login(annotator)
    assert {client.get(address).status_code for address in addresses} == {403}
    client.force_login(admin_user)
    assert {client.get(address).status_code for address in addresses} == {200}
    assert client.get(reverse("training:lineage", args=["user", 1])).status_code == 404

    page = client.get(addresses[0]).content.decode()
    picture = page[page.index("<svg") : page.index("</svg>")]
    links = re.findall(r'<a id="([^"]+)" href="([^"]+)" class="node ([^"]+)"', picture)
    assert len(links) == 5
    assert (f"dataset-{high.pk}", reverse("training:dataset", args=[high.pk]), "dataset") in links
    assert f'checkpoint-{made.pk}" href' in picture
    assert "here erased" in picture
    assert "holds deleted data" in picture
    assert "a<b>" not in page
    assert "1 × a&lt;b&gt;/1 by A-1" in page[page.index("</svg>") :]
    record = json.loads(client.get(addresses[1]).content)
    assert record["focus"] == f"checkpoint-{made.pk}"
    assert {"source": f"dataset-{high.pk}", "target": f"run-{made.run_id}", "label": "learns"} in record["edges"]  # fmt: skip
    shown = client.get(reverse("training:checkpoint", args=[made.pk])).content.decode()
    assert "<svg" in shown
    assert "still knows" in shown
