"""Recordings of people's own work: the files that came, what was said, what was done, who judged it."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Consent(models.Model):
    """A version of what contributors agree to; never edited, only followed by another."""

    version = models.CharField(max_length=32, unique=True)
    text = models.TextField()
    retain_days = models.PositiveIntegerField(
        default=0, help_text="recordings made under it are deleted after so many days; 0: kept"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.version


class Recording(models.Model):
    """What one contributor recorded at one go, from its first byte here to a Session, or to nothing."""

    class Kind(models.TextChoices):
        DEMONSTRATION = "demonstration"
        EXPLORATION = "exploration"

    class Status(models.TextChoices):
        UPLOADING = "uploading"
        UPLOADED = "uploaded"  # every byte is here; the next worker reads it
        TRANSCRIBING = "transcribing"
        ALIGNING = "aligning"
        IN_REVIEW = "in_review"
        RETURNED = "returned"  # back with its contributor, with reasons
        ACCEPTED = "accepted"
        REJECTED = "rejected"
        FAILED = "failed"  # `cause` says why and what to do; everything that came is kept
        WITHDRAWN = "withdrawn"  # by its contributor: only this row is left

    WORKING = (Status.UPLOADED, Status.TRANSCRIBING, Status.ALIGNING)

    name = models.CharField(max_length=32, unique=True)  # the recorder's random id
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recordings"
    )
    task = models.ForeignKey("annotation.Task", null=True, on_delete=models.SET_NULL)
    title = models.CharField(max_length=200, blank=True)
    instruction = models.TextField(blank=True)
    kind = models.CharField(max_length=16, choices=Kind)
    consent = models.ForeignKey(Consent, on_delete=models.PROTECT)
    about = models.JSONField()  # recording.json, as it came
    manifest_sha256 = models.CharField(max_length=64)
    bytes = models.PositiveBigIntegerField()
    confirmed_at = models.DateTimeField()  # when its person said yes to exactly these bytes
    status = models.CharField(max_length=16, choices=Status, default=Status.UPLOADING)
    failed_in = models.CharField(max_length=16, blank=True)  # the Status in which it failed
    cause = models.TextField(blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    worker_at = models.DateTimeField(null=True)  # last sign of life of who sends it, or works on it
    heard = models.PositiveSmallIntegerField(default=0)  # percent of its sound that was listened to
    round = models.PositiveSmallIntegerField(default=1)  # of reviews; rises when it comes back
    fingerprint = models.CharField(max_length=64, blank=True, db_index=True)
    session = models.OneToOneField(
        "annotation.Session", null=True, on_delete=models.SET_NULL, related_name="recording"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    uploaded_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)  # accepted, rejected or withdrawn

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["status", "worker_at"])]

    def __str__(self) -> str:
        return f"recording {self.name[:8]}"


class RecordingFile(models.Model):
    """One file of a recording's manifest; its bytes are the blob of its sha256 once `stored`."""

    recording = models.ForeignKey(Recording, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=120)
    sha256 = models.CharField(max_length=64, db_index=True)
    bytes = models.PositiveBigIntegerField()
    stored = models.BooleanField(default=False)

    class Meta:
        ordering = ["path"]
        constraints = [
            models.UniqueConstraint(fields=["recording", "path"], name="path_once_per_recording")
        ]


class RecordingStep(models.Model):
    """One action of a recording, and the thought that it got."""

    class Provenance(models.TextChoices):
        NONE = ""
        SPOKEN = "spoken"  # as it was heard
        TYPED = "typed"  # written by a person: its contributor or a reviewer
        REFINED = "refined"  # what was spoken, put in order by a model
        SYNTHESIZED = "synthesized"  # by a model, where nothing was said

    recording = models.ForeignKey(Recording, on_delete=models.CASCADE, related_name="steps")
    index = models.PositiveIntegerField()
    began = models.FloatField()  # recorder's seconds
    ended = models.FloatField()
    action = models.JSONField()
    screenshot = models.CharField(max_length=64, blank=True, db_index=True)
    width = models.PositiveIntegerField(default=0)
    height = models.PositiveIntegerField(default=0)
    element = models.JSONField(null=True)
    window = models.JSONField(default=dict)
    thought = models.TextField(blank=True)
    provenance = models.CharField(max_length=16, choices=Provenance, blank=True)
    model_version = models.CharField(max_length=100, blank=True)  # who refined or synthesized it
    # Why it has no synthesized thought although its project wants one.
    unthought = models.CharField(max_length=300, blank=True)
    problem = models.CharField(max_length=300, blank=True)  # why it can't be executed as it stands
    kept = models.BooleanField(default=True)  # a reviewer may leave it out of training

    class Meta:
        ordering = ["index"]
        constraints = [
            models.UniqueConstraint(fields=["recording", "index"], name="step_number_per_recording")
        ]


class Utterance(models.Model):
    """Words said in one breath, as they were heard, and the step that they belong to."""

    recording = models.ForeignKey(Recording, on_delete=models.CASCADE, related_name="utterances")
    index = models.PositiveIntegerField()
    began = models.FloatField()
    ended = models.FloatField()
    text = models.TextField()
    words = models.JSONField(default=list)  # [[text, began, ended, confidence], ...]
    confidence = models.FloatField()
    by = models.CharField(max_length=100)  # "person", or the engine that heard it
    step = models.ForeignKey(
        RecordingStep, null=True, on_delete=models.SET_NULL, related_name="utterances"
    )
    fit = models.FloatField(default=0)  # how sure the alignment is, 0 to 1

    class Meta:
        ordering = ["index"]
        constraints = [
            models.UniqueConstraint(fields=["recording", "index"], name="utterance_per_recording")
        ]


class Hearing(models.Model):
    """What an engine heard in one stretch of sound: kept until the utterances are written.

    A worker that takes over from a killed one goes on behind the last of them.
    """

    recording = models.ForeignKey(Recording, on_delete=models.CASCADE, related_name="hearings")
    engine = models.CharField(max_length=100)
    sound = models.CharField(max_length=120)  # path of the stretch's first file
    words = models.JSONField()  # [[text, began, ended, confidence], ...] in recorder's seconds

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["recording", "engine", "sound"], name="one_hearing_per_stretch_and_engine"
            )
        ]


class RecordingReview(models.Model):
    """One reviewer's word on a recording; two different ones accept it."""

    class Verdict(models.TextChoices):
        ACCEPTED = "accepted"
        RETURNED = "returned"
        REJECTED = "rejected"

    recording = models.ForeignKey(Recording, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    round = models.PositiveSmallIntegerField()
    verdict = models.CharField(max_length=16, choices=Verdict)
    reasons = models.TextField(blank=True)
    fixes = models.JSONField(default=list, blank=True)  # [{"index", "thought"|"action"|"kept"}]
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["recording", "reviewer", "round"], name="one_verdict_per_reviewer_and_round"
            )
        ]


class Rewording(models.Model):
    """A thought in other words, by a model; kept apart from the original, never shown as said."""

    step = models.ForeignKey(RecordingStep, on_delete=models.CASCADE, related_name="rewordings")
    text = models.TextField()
    model_version = models.CharField(max_length=100)
    at = models.DateTimeField(auto_now_add=True)
