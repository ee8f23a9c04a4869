"""Jobs of the sandbox app: each finds by the rows what there is to do."""

from __future__ import annotations

from celery import shared_task


@shared_task(ignore_result=True)
def reap_leases() -> None:
    """End the leases and requests whose time is over."""
    from sandbox.leasing import reaper

    reaper.reap()


@shared_task(ignore_result=True)
def prune_tickets() -> None:
    """Delete tickets that nobody can use any more."""
    from sandbox.screen import tickets

    tickets.prune()


@shared_task(ignore_result=True)
def give_up_silent_hosts() -> None:
    """Give up hosts that have not been seen for long, and what ran there."""
    from sandbox.host import hosts

    hosts.give_up_silent()


@shared_task(ignore_result=True)
def canary() -> None:
    """Lease a computer of each pool, use it, and give it back."""
    from sandbox import canary

    canary.run_all()
