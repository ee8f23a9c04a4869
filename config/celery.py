"""Celery: jobs live in each app's jobs.py; queues are default, agent and training."""

from __future__ import annotations

import os

from celery import Celery
from kombu import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("tandem")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [Queue("default"), Queue("agent"), Queue("training")]
app.autodiscover_tasks(related_name="jobs")
