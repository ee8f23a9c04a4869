"""Our web apps by name."""

from sandbox.sites.app import App
from sandbox.sites.apps import contacts, shop, tickets

APPS: dict[str, App] = {app.name: app for app in (contacts.APP, tickets.APP, shop.APP)}
