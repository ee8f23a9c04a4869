"""Addresses of the sandbox app."""

from django.urls import path

from sandbox.views import fleet, metrics, previews, tickets

urlpatterns = [
    path("sandbox/leases/<int:lease_id>/ticket", tickets.ticket, name="lease-ticket"),
    path("sandbox/leases/<int:lease_id>/ports", previews.ports, name="lease-ports"),
    path(
        "sandbox/leases/<int:lease_id>/ports/<int:port>/open",
        previews.open_port,
        name="lease-port-open",
    ),
    path("metrics", metrics.metrics, name="metrics"),
    path("fleet/", fleet.overview, name="fleet"),
    path("fleet/computers/", fleet.sandboxes, name="fleet-sandboxes"),
    path("fleet/computers/<int:pk>/", fleet.sandbox, name="fleet-sandbox"),
    path("fleet/computers/<int:pk>/thumbnail.jpg", fleet.thumbnail, name="fleet-thumbnail"),
    path("fleet/computers/<int:pk>/end/", fleet.kill, name="fleet-kill"),
    path("fleet/computers/<int:pk>/reset/", fleet.reset, name="fleet-reset"),
    path("fleet/leases/", fleet.held, name="fleet-leases"),
    path("fleet/leases/<int:pk>/end/", fleet.end_lease, name="fleet-end-lease"),
    path("fleet/failures/", fleet.failures, name="fleet-failures"),
    path("fleet/hosts/<int:pk>/<str:verb>/", fleet.turn_host, name="fleet-host"),
    path("fleet/pools/<int:pk>/<str:verb>/", fleet.turn_pool, name="fleet-pool"),
]
