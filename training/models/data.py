"""Datasets, and what is in them."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Dataset(models.Model):
    """A frozen, hashed set of trajectories; never edited."""

    class Pool(models.TextChoices):
        SFT = "sft"  # V(s) = 1
        CT = "ct"  # V(s) = 0
        GENERAL = "general"  # rows from elsewhere, mixed into both

    name = models.SlugField(unique=True)
    pool = models.CharField(max_length=8, choices=Pool)
    filters = models.JSONField(default=dict, blank=True)
    sha256 = models.CharField(max_length=64)
    # In the blob store, JSON lines: trajectories, or rows as they are in a general dataset.
    uri = models.CharField(max_length=500)
    trajectories = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0)
    # Of people's trajectories again in other words; not counted above.
    augmented = models.PositiveIntegerField(default=0)
    augmented_steps = models.PositiveIntegerField(default=0)  # those that were said in other words
    left_out = models.JSONField(default=list, blank=True)  # [{"session" or "episode", "reason"}]
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    frozen_at = models.DateTimeField(auto_now_add=True)
    # When somebody's data was deleted from it: its file is gone then, and nothing trains on it.
    erased_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.sha256[:8]})"


class DatasetEntry(models.Model):
    """That a session or an episode is in a dataset: the lineage from weights back to people.

    Neither is named any more where it was deleted since.
    """

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="entries")
    session = models.ForeignKey(
        "annotation.Session", null=True, on_delete=models.PROTECT, related_name="dataset_entries"
    )
    episode = models.ForeignKey(
        "Episode", null=True, on_delete=models.PROTECT, related_name="dataset_entries"
    )
    line = models.PositiveIntegerField()
    trajectory_sha256 = models.CharField(max_length=64)
    augmented = models.BooleanField(default=False)  # in other words, by a model
    # Why V(s) sent it here, in words: the verifier, the reviewer, or a reward model by its name.
    reason = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["line"]
        verbose_name_plural = "dataset entries"
        constraints = [
            models.UniqueConstraint(
                fields=["dataset", "session", "augmented"], name="session_once_per_dataset"
            ),
            models.UniqueConstraint(fields=["dataset", "episode"], name="episode_once_per_dataset"),
            models.CheckConstraint(
                condition=models.Q(session=None) | models.Q(episode=None),
                name="one_source_per_entry",
            ),
        ]
