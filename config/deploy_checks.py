"""`manage.py check --deploy`: what Tandem refuses to run with where other people reach it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

from config import env

SECRET_LENGTH = 50
SERVICES = {
    "DATABASE_URL": "postgres://user:password@host:5432/tandem",
    "BROKER_URL": "redis://:password@host:6379/0",
    "CHANNEL_LAYER_URL": "redis://:password@host:6379/1",
    "STORAGE_URL": "s3://KEY:SECRET@host:9000/bucket",
    "POLICY_URL": "http://policy:8100",
}


@register(Tags.security, deploy=True)
def production_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Return an error for each setting that would be unsafe in production."""
    return [*_django(), *_services(), *_parts()]


def _django() -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if not settings.PRODUCTION:
        found.append(_error("E001", "TANDEM_ENV is not production", "set TANDEM_ENV=production"))
    if settings.DEBUG:
        found.append(_error("E002", "DEBUG shows secrets to everybody", "unset DEBUG"))
    if env.is_embedded("SECRET_KEY"):
        found.append(
            _error("E003", "SECRET_KEY is not set", f"set {SECRET_LENGTH} random characters")
        )
    elif len(settings.SECRET_KEY) < SECRET_LENGTH or len(set(settings.SECRET_KEY)) < 5:
        found.append(
            _error("E004", "SECRET_KEY is easy to guess", f"set {SECRET_LENGTH} random characters")
        )
    if not settings.ALLOWED_HOSTS or "*" in settings.ALLOWED_HOSTS:
        found.append(
            _error("E005", "ALLOWED_HOSTS lets any name in, or none", "list the site's host names")
        )
    if not (settings.SESSION_COOKIE_SECURE and settings.CSRF_COOKIE_SECURE):
        found.append(_error("E006", "cookies travel without TLS", "unset SECURE_COOKIES"))
    near = [
        host for host in settings.ALLOWED_HOSTS if _near(host.strip("."), settings.PREVIEW_HOST)
    ]
    if settings.PREVIEW_HOST and near:
        found.append(
            _error(
                "E007",
                f"PREVIEW_HOST is too near to {near[0]}: what computers serve could set its cookies",
                "give previews a domain that shares no part with the site's but the public suffix",
            )
        )
    return found


def _near(site: str, previews: str) -> bool:
    """Whether one name lies in the other's domain, or both in that of the site's parent."""
    parent = site.partition(".")[2]
    related = f".{previews}".endswith(f".{parent}") if "." in parent else False
    return related or f".{site}".endswith(f".{previews}") or f".{previews}".endswith(f".{site}")


def _services() -> list[CheckMessage]:
    found: list[CheckMessage] = [
        _error(
            "E010", f"{name} is not set: the embedded service is for one machine", f"set {example}"
        )
        for name, example in SERVICES.items()
        if env.is_embedded(name)
    ]
    if settings.BROKER_URL.startswith(("memory:", "filesystem:")):
        found.append(_error("E011", "BROKER_URL loses jobs between processes", "use redis://"))
    if settings.STORAGE_URL.startswith("file:"):
        found.append(_error("E012", "STORAGE_URL is a folder of one machine", "use s3://"))
    return found


def _parts() -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if settings.SANDBOX_PROVIDER == "fake":
        found.append(_error("E022", "SANDBOX_PROVIDER=fake has no desktops", "name a real one"))
    # As root Chromium has no sandbox of its own either, so pages are no safer than desktops.
    kind = settings.SANDBOX_PROVIDER
    if kind in ("local", "browser") and not settings.SANDBOX_LOCAL_ACCEPTED:
        found.append(
            _error(
                "E020",
                f"SANDBOX_PROVIDER={kind} shares the host's kernel with its guests",
                "give the desktops a host that does nothing else, then set SANDBOX_LOCAL_ACCEPTED=1",
            )
        )
    if not settings.POLICY_TOKEN:
        found.append(
            _error(
                "E021",
                "TANDEM_POLICY_TOKEN is not set: anybody may load weights",
                "set a long secret",
            )
        )
    return found


@register(Tags.database, deploy=True, databases=["default"])
def production_partner(
    app_configs: Any, databases: list[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Return an error if annotators would work beside a script (`--database default` asks)."""
    from django.db import Error as DatabaseError

    from agent.models import Deployment

    if not databases:
        return []
    try:
        scripted = Deployment.objects.filter(
            is_partner=True, kind=Deployment.Kind.SCRIPTED
        ).exists()
    except DatabaseError as error:
        return [_error("E031", f"the database does not answer: {error}", "migrate first")]
    if scripted:
        return [_error("E030", "the partner is a scripted policy", "choose another in the admin")]
    return []


def _error(number: str, message: str, hint: str) -> Error:
    return Error(message, hint=hint, id=f"tandem.{number}")
