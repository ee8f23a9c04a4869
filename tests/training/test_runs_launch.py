"""Launching: names, fields that are wrong, datasets that don't fit."""

from __future__ import annotations

import pytest

from tests.training.test_runs import base, dataset, launch, place, queued  # noqa: F401  (fixtures)
from training import runs
from training.errors import BadConfig, NameTaken
from training.presets import presets_of, read_config

# ruff: noqa: F811


def test_a_launch_is_queued_under_the_next_free_name(
    dataset, base, queued, admin_user, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        one = runs.launch(kind="sft", dataset=dataset, base=base, config={}, by=admin_user)
        two = launch(dataset, base)
    assert (one.name, two.name) == ("sft-clicks-1", "sft-clicks-2")
    assert one.config == presets_of("sft")["standard"]
    assert queued == [one.pk, two.pk]
    with pytest.raises(NameTaken, match="sft-clicks-1"):
        runs.launch(kind="sft", dataset=dataset, base=base, config={}, by=None, name=one.name)


@pytest.mark.parametrize(
    ("values", "field", "says"),
    [
        ({"learning_rate": "fast"}, "learning_rate", "'fast' is not a number"),
        ({"learning_rate": "nan"}, "learning_rate", "nan is not between 0 and 1"),
        ({"learning_rate": 0}, "learning_rate", "changes nothing"),
        ({"batch_size": "2.5"}, "batch_size", "not a whole number"),
        ({"batch_size": 0}, "batch_size", "not between 1 and 4096"),
        ({"dtype": "float8"}, "dtype", "not one of float32, bfloat16"),
        ({"epochs": 0, "steps": 0}, "steps", "both are 0"),
        ({"stpes": 3}, "stpes", "no such field"),
    ],
)
def test_every_bad_value_is_named_by_its_field(values, field, says):
    with pytest.raises(BadConfig) as caught:
        read_config("sft", values)
    assert says in caught.value.errors[field]


def test_a_dataset_of_the_other_pool_is_refused(dataset, base):
    dataset.pool = "ct"
    with pytest.raises(BadConfig, match="CT pool"):
        launch(dataset, base)
    with pytest.raises(BadConfig, match="no trainer for ct"):
        runs.launch(kind="ct", dataset=dataset, base=base, config={}, by=None)
