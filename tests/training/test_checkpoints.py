"""Promotion and its way back, what can't be promoted, and the checkpoint that ships."""

from __future__ import annotations

import json

import pytest
from django.utils import timezone

from agent.models import Deployment
from training.errors import Mismatch, WrongState
from training.models import Checkpoint, Promotion
from training.weights import checkpoints, promotions

pytestmark = pytest.mark.django_db

MANIFEST = {"format": 1, "dialect": "element", "observation": "elements"}


def checkpoint(version: str, **values) -> Checkpoint:
    uri = f"s3://tandem/checkpoints/{version}"
    return Checkpoint.objects.create(version=version, uri=uri, **{"manifest": MANIFEST} | values)


@pytest.fixture
def deployment() -> Deployment:
    return Deployment.objects.create(
        name="partner", reads="elements", dialect="element", version="box", is_partner=True
    )


def test_a_promotion_points_the_deployment_at_the_checkpoint(deployment, admin_user):
    box, new = checkpoint("box"), checkpoint("sft-1-step-8")
    promotion = promotions.promote(new, deployment=deployment, by=admin_user)
    deployment.refresh_from_db()
    assert (deployment.version, deployment.checkpoint_uri) == (new.version, new.uri)
    assert (promotion.previous, promotion.by) == (box, admin_user)
    with pytest.raises(WrongState, match="already"):
        promotions.promote(new, deployment=deployment, by=admin_user)
    assert Promotion.objects.count() == 1


def test_rolling_back_is_a_promotion_of_what_was_there(deployment, admin_user):
    box, new = checkpoint("box"), checkpoint("new")
    promotions.promote(new, deployment=deployment, by=admin_user)
    back = promotions.roll_back(deployment, by=admin_user)
    deployment.refresh_from_db()
    assert (deployment.version, deployment.checkpoint_uri) == (box.version, box.uri)
    assert (back.checkpoint, back.previous) == (box, new)
    assert Promotion.objects.count() == 2


def test_without_a_promotion_there_is_nothing_to_roll_back(deployment):
    with pytest.raises(WrongState, match="choose a checkpoint"):
        promotions.roll_back(deployment, by=None)


@pytest.mark.parametrize(
    ("manifest", "kind", "says"),
    [
        ({"dialect": "box", "observation": "elements"}, "local", "dialect 'box'"),
        ({"dialect": "element", "observation": "screenshot"}, "local", "'screenshot'"),
        (MANIFEST, "openai", "loads no checkpoints"),
    ],
)
def test_a_deployment_that_asks_otherwise_is_refused(deployment, manifest, kind, says):
    deployment.kind = kind
    deployment.save()
    with pytest.raises(Mismatch, match=says):
        promotions.promote(checkpoint("c", manifest=manifest), deployment=deployment, by=None)
    deployment.refresh_from_db()
    assert deployment.version == "box"
    assert not Promotion.objects.exists()


def test_the_shipped_checkpoint_is_registered_once(tmp_path, monkeypatch):
    (tmp_path / "tandem.json").write_text(json.dumps(MANIFEST | {"version": "box"}))
    (tmp_path / "metrics.json").write_text('{"success": 0.9}')
    monkeypatch.setattr(checkpoints, "BOX", tmp_path)
    one = checkpoints.register_box()
    assert (one.version, one.uri, one.metrics) == ("box", str(tmp_path), {"success": 0.9})
    (tmp_path / "weights").write_bytes(b"other")
    two = checkpoints.register_box()
    assert two.pk == one.pk
    assert two.sha256 != one.sha256


def test_a_fingerprint_depends_on_names_and_contents(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").write_bytes(b"1")
    first = checkpoints.fingerprint(checkpoints.files_of(tmp_path))
    (tmp_path / "deep" / "a").rename(tmp_path / "a")
    assert checkpoints.fingerprint(checkpoints.files_of(tmp_path)) != first


def test_a_critic_and_what_learnt_from_deleted_data_are_not_promoted(deployment):
    critic = checkpoint("critic", role=Checkpoint.Role.CRITIC)
    with pytest.raises(Mismatch, match="can't act"):
        promotions.promote(critic, deployment=deployment, by=None)
    marked = checkpoint("marked", erased_at=timezone.now())
    with pytest.raises(Mismatch, match="data that was deleted"):
        promotions.promote(marked, deployment=deployment, by=None)
