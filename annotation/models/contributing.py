"""What contributors are asked to record: applications, their functions, queries, and who was offered what."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import MD5

from annotation.models.recordings import Recording

SHARE = (MinValueValidator(0.0), MaxValueValidator(1.0))


def _share(help_text: str) -> models.FloatField[Any, Any]:
    return models.FloatField(default=0.0, validators=SHARE, help_text=help_text)


def _source() -> models.CharField[Any, Any]:
    return models.CharField(max_length=500, blank=True, help_text="where the number is from")


def _weight() -> models.FloatField[Any, Any]:
    return models.FloatField(
        default=1.0, validators=(MinValueValidator(0.0), MaxValueValidator(1000.0))
    )


def _between(name: str, low: float, high: float) -> models.CheckConstraint:
    inside = Q(**{f"{name}__gte": low, f"{name}__lte": high})
    return models.CheckConstraint(condition=inside, name=f"%(class)s_{name}")


class Project(models.Model):
    """How what is asked for is weighed, and how long is kept what came. One row: a server is one project."""

    coverage_weight = _weight()
    engagement_weight = _weight()
    penetration_weight = _weight()
    frequency_weight = _weight()
    benefit_weight = _weight()
    transfer_weight = _weight()
    writer = models.ForeignKey(
        "agent.Deployment", null=True, blank=True, on_delete=models.SET_NULL, related_name="+",
        help_text="the deployment that is asked for queries; none: people write all of them",
    )  # fmt: skip
    synthesizer = models.ForeignKey(
        "agent.Deployment", null=True, blank=True, on_delete=models.SET_NULL, related_name="+",
        help_text="the deployment that writes a thought where nothing was said; none: those steps have none",
    )  # fmt: skip
    offer_hours = models.PositiveSmallIntegerField(
        default=24, validators=(MinValueValidator(1), MaxValueValidator(24 * 60)),
        help_text="so long is a task kept for the contributor who got it",
    )  # fmt: skip
    retain_days = models.PositiveSmallIntegerField(
        default=0, help_text="recordings that were not accepted are deleted after so many days; 0: kept"
    )  # fmt: skip

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="one_project")]

    def __str__(self) -> str:
        return "the project"


class Application(models.Model):
    """A program or site that people work with, and how much it stands for (each from 0 to 1)."""

    name = models.CharField(max_length=64, unique=True)
    coverage = _share("industry coverage, 0 to 1")
    coverage_source = _source()
    engagement = _share("user engagement, 0 to 1")
    engagement_source = _source()
    penetration = _share("market penetration, 0 to 1")
    penetration_source = _source()

    class Meta:
        ordering = ["name"]
        constraints = [_between(name, 0, 1) for name in ("coverage", "engagement", "penetration")]

    def __str__(self) -> str:
        return self.name


class Function(models.Model):
    """What one can do in an Application; below it its sub-functions."""

    application = models.ForeignKey(Application, on_delete=models.CASCADE, related_name="functions")
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="children"
    )
    name = models.CharField(max_length=120)
    frequency = models.FloatField(
        default=0.0, validators=(MinValueValidator(0.0), MaxValueValidator(1e12)),
        help_text="uses, in any unit that is the same for the whole application",
    )  # fmt: skip
    benefit = _share("what the user has of it, 0 to 1")
    transfer = _share("how far it carries over to other scenarios, 0 to 1")

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["application", "parent", "name"], nulls_distinct=False,
                name="function_once_per_parent",
            ),
            _between("frequency", 0, 1e12),
            _between("benefit", 0, 1),
            _between("transfer", 0, 1),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.name


class Level(models.TextChoices):
    """Who would ask for it."""

    NOVICE = "novice"
    INTERMEDIATE = "intermediate"
    ADVANCED = "advanced"
    EXPERT = "expert"


class QueryRequest(models.Model):
    """That somebody asked the project's writer for queries of one Function, and what came of it."""

    class Status(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        FAILED = "failed"  # `cause` says why

    function = models.ForeignKey(Function, on_delete=models.CASCADE, related_name="requests")
    level = models.CharField(max_length=16, choices=Level)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    status = models.CharField(max_length=8, choices=Status, default=Status.WAITING)
    cause = models.TextField(blank=True)
    came = models.PositiveSmallIntegerField(default=0)  # queries that were new
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]


class Query(models.Model):
    """What a person is asked to do, in words, and how hard it is. Published it becomes a Task."""

    class Provenance(models.TextChoices):
        PERSON = "person"
        MODEL = "model"
        EDITED = "edited", "model, edited"

    class State(models.TextChoices):
        WRITTEN = "written"  # nobody is asked for it yet
        PUBLISHED = "published"
        RETIRED = "retired"

    RUBRIC = ("steps", "pages", "prerequisites", "exceptions")

    function = models.ForeignKey(Function, on_delete=models.CASCADE, related_name="queries")
    text = models.TextField(max_length=4000)
    level = models.CharField(max_length=16, choices=Level, default=Level.NOVICE)
    also = models.ManyToManyField(
        Application, blank=True, related_name="+", help_text="the others of a multi-app query"
    )
    kind = models.CharField(
        max_length=16, choices=Recording.Kind, default=Recording.Kind.DEMONSTRATION
    )
    provenance = models.CharField(max_length=8, choices=Provenance, default=Provenance.PERSON)
    model_version = models.CharField(max_length=100, blank=True)
    steps = models.PositiveSmallIntegerField(default=0, validators=(MaxValueValidator(3),))
    pages = models.PositiveSmallIntegerField(default=0, validators=(MaxValueValidator(3),))
    prerequisites = models.PositiveSmallIntegerField(default=0, validators=(MaxValueValidator(3),))
    exceptions = models.PositiveSmallIntegerField(default=0, validators=(MaxValueValidator(3),))
    wanted = models.PositiveSmallIntegerField(
        default=2, validators=(MinValueValidator(1), MaxValueValidator(100)),
        help_text="recordings, each by another person",
    )  # fmt: skip
    state = models.CharField(max_length=16, choices=State, default=State.WRITTEN)
    task = models.OneToOneField(
        "annotation.Task", null=True, blank=True, on_delete=models.SET_NULL, related_name="query"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "queries"
        constraints = [
            # A hash: long texts do not fit into an index.
            models.UniqueConstraint("function", MD5("text"), name="query_once_per_function"),
            *(_between(name, 0, 3) for name in ("steps", "pages", "prerequisites", "exceptions")),
        ]

    def __str__(self) -> str:
        return self.text[:80]

    @property
    def difficulty(self) -> int:
        """Return the sum of the rubric, from 0 to 12."""
        return sum(getattr(self, name) for name in self.RUBRIC)


class Offer(models.Model):
    """That a Task was offered to a contributor, and is kept for them until a time."""

    task = models.ForeignKey("annotation.Task", on_delete=models.CASCADE, related_name="offers")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="offers"
    )
    at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["task", "user"], name="offered_once")]
        indexes = [models.Index(fields=["task", "expires_at"])]
