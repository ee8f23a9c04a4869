"""The admin's pages of the sandbox app."""

from typing import Any

from django.test import Client

from sandbox.models import Lease
from tests.sandbox.test_leases import acquire, make_sandbox


def test_an_admin_ends_a_lease_and_sees_no_password(
    admin_user: Any, annotator: Any, client: Client
) -> None:
    sandbox = make_sandbox()
    sandbox.handle["rfb_password"] = "hunter2"
    sandbox.save()
    lease = acquire(annotator)
    client.force_login(admin_user)
    page = client.get(f"/admin/sandbox/sandbox/{sandbox.pk}/change/")
    assert page.status_code == 200 and b"hunter2" not in page.content
    for name in ("sandbox", "lease", "inputevent"):
        assert client.get(f"/admin/sandbox/{name}/").status_code == 200
    client.post("/admin/sandbox/lease/", {"action": "end", "_selected_action": [lease.pk]})
    lease.refresh_from_db()
    assert (lease.state, lease.release_reason) == (Lease.State.RELEASED, "ended by admin")
