"""Settings, URLs, processes: knows everyone, nobody imports it."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
