"""Celery functions of training; each may run twice or never."""

from __future__ import annotations

from celery import shared_task
from celery.signals import worker_shutting_down


@shared_task(acks_late=True, ignore_result=True)
def supervise_run(run_id: int) -> None:
    """Look after a run's trainer until it ends; does nothing where somebody else does."""
    from training.runs.supervise import supervise

    supervise(run_id)


@shared_task(ignore_result=True, expires=60)
def find_lost_runs() -> None:
    """Beat, each 15 s: queue again what nobody looks after."""
    from training.runs.supervise import find_lost

    find_lost()


@shared_task(ignore_result=True, expires=60)
def reap_episodes() -> None:
    """Beat, each 10 s: take back what dead rollout workers held, and end what nobody ended."""
    from training.rollouts import episodes, rollouts, workers

    episodes.reap()
    rollouts.settle_all()
    workers.forget()


@shared_task(ignore_result=True, expires=60)
def settle_evaluations() -> None:
    """Beat, each 30 s: keep the results of evaluations whose rollout has ended."""
    from training.evaluations import evaluations

    evaluations.settle_all()


@shared_task(ignore_result=True, expires=60)
def advance_iterations() -> None:
    """Beat, each 10 s: take every live iteration of the flywheel a step further."""
    from training.iterations import driver

    driver.advance_all()


@shared_task(acks_late=True, ignore_result=True)
def keep_iteration_server(iteration_id: int) -> None:
    """Start or stop the policy server of an iteration on this machine, as its row wants."""
    from training.iterations import serving

    serving.keep(iteration_id)


@shared_task(acks_late=True, ignore_result=True)
def calibrate(calibration_id: int) -> None:
    """Have a reward model judge its labelled set; does nothing where another job does."""
    from training.rewards import calibrations

    calibrations.run(calibration_id)


@shared_task(ignore_result=True, expires=60)
def find_lost_calibrations() -> None:
    """Beat, each 60 s: queue again what no job works on."""
    from training.rewards import calibrations

    calibrations.find_lost()


@worker_shutting_down.connect
def _let_go(**_: object) -> None:
    """Checkpoint the trainers of this worker, put their runs back into the queue, and stop servers.

    Reaches the supervising thread only where the worker's pool is threads (or solo).
    """
    from training.iterations import serving
    from training.runs.supervise import shutting_down

    shutting_down.set()
    serving.stop_here()


@shared_task(ignore_result=True)
def erase_withdrawn() -> None:
    """Delete the sessions of withdrawn recordings, and mark what learnt from them."""
    from training import erasure

    erasure.erase_withdrawn()
