"""Every job has one queue, and every queue a worker."""

from __future__ import annotations

from config.celery import app


def test_a_route_names_a_job_and_a_queue_that_a_worker_reads() -> None:
    app.loader.import_default_modules()
    routes = app.conf.task_routes
    assert set(routes) <= set(app.tasks)
    assert {route["queue"] for route in routes.values()} <= {q.name for q in app.conf.task_queues}


def test_a_job_that_beat_asks_for_exists() -> None:
    app.loader.import_default_modules()
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= set(app.tasks)
