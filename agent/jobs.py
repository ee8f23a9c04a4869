"""Jobs of agents: each loads rows, calls one verb, and may run twice or never."""

from __future__ import annotations

from celery import shared_task


@shared_task(ignore_result=True)
def reconcile() -> None:
    """Make the policy servers serve what the deployments say; beat asks for it every few seconds."""
    from agent import deployments

    deployments.reconcile_all()
