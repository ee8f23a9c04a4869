"""How the tests of pages and verbs ask: as somebody who is signed in."""

from __future__ import annotations

import json

from django.test import Client

CLICK = {"type": "click", "x": 20, "y": 30, "button": "left", "count": 1, "modifiers": []}


def signed_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def post(client, url, **body):
    return client.post(url, json.dumps(body), content_type="application/json")
