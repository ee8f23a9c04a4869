"""Signing in, and what the server offers."""

from __future__ import annotations

import argparse

from recorder.server.client import Client, ServerError, checked
from recorder.server.sign_in import sign_in
from recorder.server.tasks import offers
from recorder.server.tokens import Tokens
from recorder.settings import Settings, settings_folder


def login(options: argparse.Namespace) -> None:
    server = checked(options.server)
    client = Client(server)
    try:
        token = sign_in(client, show=_show)
    finally:
        client.close()
    tokens().keep(server, token)
    Settings.load(settings_folder()).at(server).save(settings_folder())
    print(f"Signed in to {server}.")


def logout(_: argparse.Namespace) -> None:
    settings = Settings.load(settings_folder())
    tokens().forget(settings.server)
    print("Signed out: this computer has no token any more.")


def tasks(options: argparse.Namespace) -> None:
    client = connected()
    try:
        found = offers(client, options.kind)
    finally:
        client.close()
    for offer in found:
        print(plain(f"{offer.task.id}  {offer.kind:13}  {offer.task.title}"))
    if not found:
        print('No task waits for you. Record work of your own: tandem-recorder record --own "..."')


def plain(text: str) -> str:
    """Return text of a server without what a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def connected() -> Client:
    """Return a client with the token of this computer; raises ServerError where nobody signed in."""
    server = Settings.load(settings_folder()).server
    token = tokens().get(server) if server else ""
    if not token:
        raise ServerError("not signed in: `tandem-recorder login https://SERVER`")
    return Client(server, token)


def tokens() -> Tokens:
    return Tokens(settings_folder(), say=print)


def _show(address: str, code: str) -> None:
    print(f"Open {address} in a browser and enter the code  {code}", flush=True)
