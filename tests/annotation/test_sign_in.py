"""Signing in: guessing passwords is slow, and one name's guesses lock nobody else out."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _quick_hashes(settings) -> None:  # type: ignore[no-untyped-def]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def sign_in(client: Client, name: str, password: str, address: str = "10.0.0.1") -> int:
    form = {"username": name, "password": password}
    return client.post("/accounts/login/", form, REMOTE_ADDR=address).status_code


def test_after_ten_wrong_passwords_the_right_one_is_refused_too(client: Client) -> None:
    User.objects.create_user("ann", password="right")
    codes = [sign_in(client, "ann", f"wrong-{n}") for n in range(10)]
    assert codes[:9] == [200] * 9
    assert sign_in(client, "ann", "right") == 429
    page = client.post(
        "/accounts/login/", {"username": "ann", "password": "right"}, REMOTE_ADDR="10.0.0.1"
    )
    assert "15 minutes" in page.content.decode()


def test_others_and_other_places_are_not_locked_out(client: Client) -> None:
    User.objects.create_user("ann", password="right")
    User.objects.create_user("bob", password="right")
    for n in range(11):
        sign_in(client, "ann", f"wrong-{n}")
    assert sign_in(client, "bob", "right") == 302
    assert sign_in(Client(), "ann", "right", address="10.0.0.2") == 302


def test_a_right_password_forgets_the_wrong_ones(client: Client) -> None:
    User.objects.create_user("ann", password="right")
    for _ in range(2):
        for n in range(8):
            assert sign_in(client, "ann", f"wrong-{n}") == 200
        assert sign_in(client, "ann", "right") == 302
        client.logout()
