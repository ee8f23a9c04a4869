"""The fleet's figures for Prometheus, read from the rows each time they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sandbox.models import AuditEvent, Host, Lease, LeaseRequest
from sandbox.operations import fleet


def text() -> bytes:
    """Return all figures in the Prometheus text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Rows())
    return bytes(generate_latest(registry))


class _Rows(Collector):
    """Counts rows; nothing is kept in this process, so that any web process may be asked."""

    def collect(self) -> Iterator[Metric]:
        now = timezone.now()
        computers = GaugeMetricFamily(
            "tandem_sandboxes", "Computers by pool and state.", labels=["pool", "state"]
        )
        waiting = GaugeMetricFamily(
            "tandem_lease_requests_waiting", "Callers who wait, by pool.", labels=["pool"]
        )
        oldest = GaugeMetricFamily(
            "tandem_lease_request_oldest_seconds", "How long the first has waited.", labels=["pool"]
        )
        degraded = GaugeMetricFamily(
            "tandem_pool_degraded", "1 while a pool's computers do not start.", labels=["pool"]
        )
        for one in fleet.pools():
            name = one.pool.name if one.pool else ""
            for state in fleet.STATES:
                computers.add_metric([name, state], one.states.get(state, 0))
            waiting.add_metric([name], one.waiting)
            since = (now - one.waiting_since).total_seconds() if one.waiting_since else 0
            oldest.add_metric([name], since)
            degraded.add_metric([name], int(bool(one.pool and one.pool.degraded_at)))
        yield from (computers, waiting, oldest, degraded)
        yield from _hosts()
        yield from _totals()


def _hosts() -> Iterator[Metric]:
    up = GaugeMetricFamily("tandem_host_up", "1 while a host is seen.", labels=["host"])
    slots = GaugeMetricFamily("tandem_host_slots", "Computers a host can carry.", labels=["host"])
    used = GaugeMetricFamily("tandem_host_computers", "Computers on a host.", labels=["host"])
    for one in fleet.hosts():
        seen = not one.silent and one.host.state != Host.State.DOWN
        up.add_metric([one.host.name], int(seen))
        slots.add_metric([one.host.name], one.host.slots)
        used.add_metric([one.host.name], one.live)
    yield from (up, slots, used)


def _totals() -> Iterator[Metric]:
    active = GaugeMetricFamily("tandem_leases", "Active leases.", labels=["purpose"])
    for purpose, count in fleet.leases().items():
        active.add_metric([purpose], count)
    ended = CounterMetricFamily("tandem_leases_ended", "Leases that are over.", labels=["ending"])
    over = Lease.objects.exclude(state=Lease.State.ACTIVE).order_by().values_list("ending")
    for ending, count in over.annotate(count=Count("pk")):
        ended.add_metric([ending or "unknown"], count)
    asked = CounterMetricFamily(
        "tandem_lease_requests", "Requests that had to wait, by how they ended.", labels=["state"]
    )
    done = LeaseRequest.objects.exclude(state=LeaseRequest.State.WAITING).order_by()
    for state, count in done.values_list("state").annotate(count=Count("pk")):
        asked.add_metric([state], count)
    events = CounterMetricFamily("tandem_audit_events", "What happened.", labels=["kind"])
    kinds = AuditEvent.objects.order_by().values_list("kind").annotate(count=Count("pk"))
    for kind, count in kinds:
        events.add_metric([kind], count)
    yield from (active, ended, asked, events)
