"""The only reader of the environment in Django processes; every variable is documented in .env.example.

A service variable that is unset means embedded: its address is then what `make run` wrote into the
state folder.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent


class WrongVariable(Exception):
    """A variable of the environment holds something that cannot be meant."""


def text(name: str, default: str = "") -> str:
    """Return a variable, or the content of the file that NAME_FILE names (Docker secrets)."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise WrongVariable(f"{name}_FILE={path}: {error.strerror}") from error
    return os.environ.get(name, default)


def flag(name: str, default: bool) -> bool:
    raw = text(name).strip().lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    raise WrongVariable(f"{name}={raw!r}: say 1 or 0")


def integer(name: str, default: int) -> int:
    raw = text(name).strip()
    if not raw:
        return default
    try:
        return int(raw)
    except ValueError as error:
        raise WrongVariable(f"{name}={raw!r}: say a whole number") from error


def words(name: str, default: str = "") -> list[str]:
    """Return a comma-separated list."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def choice(name: str, default: str, among: tuple[str, ...]) -> str:
    value = text(name) or default
    if value not in among:
        raise WrongVariable(f"{name}={value!r}: say one of {', '.join(among)}")
    return value


def state_folder() -> Path:
    """Return the folder that holds everything `make run` keeps: TANDEM_STATE, else var/ beside manage.py."""
    return Path(text("TANDEM_STATE") or BASE_DIR / "var").resolve()


@cache
def _embedded() -> dict[str, str]:
    try:
        return dict(json.loads((state_folder() / "state" / "services.json").read_text()))
    except FileNotFoundError:
        return {}
    except PermissionError as error:
        raise WrongVariable(
            f"{error.filename} belongs to another user: run as that user, or set TANDEM_STATE"
        ) from error


def service(name: str, default: str = "") -> str:
    """Return where a service is: the variable, else the embedded one of this state folder."""
    return text(name) or _embedded().get(name, default)


def is_embedded(name: str) -> bool:
    """Return whether this variable is left to the embedded services."""
    return not text(name)
