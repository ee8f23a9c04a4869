"""What no database keeps is refused at the door, in words."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse


@pytest.mark.django_db
def test_a_form_an_address_or_a_query_with_nul_is_refused(client: Any, admin_user: Any) -> None:
    sign_in = reverse("login")
    assert client.post(sign_in, {"username": "a\0b", "password": "x"}).status_code == 400
    client.force_login(admin_user)
    assert client.get("/tasks/?q=%00").status_code == 400
    assert client.get("/recordings/a%00b/").status_code in (400, 404)
    assert client.get("/tasks/?q=a").status_code == 200
