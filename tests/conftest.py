"""What every test may ask for: real services, started when first asked, and the people of the product."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import hypothesis
import pytest
from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate

from config.embedded import s3, valkey
from config.embedded.postgres import Postgres, reachable
from config.embedded.s3 import PORTS, ObjectStore
from config.embedded.service import (
    Account,
    Service,
    free_port,
    free_ports,
    launch,
    stop,
    unprivileged,
    wait_ready,
)  # fmt: skip
from config.embedded.valkey import Valkey
from tests.isolation import STATE

# No test asserts a time, and an example on a busy machine is no slower code.
hypothesis.settings.register_profile(
    "tandem", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tandem")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make people cheap: a real hash of their passwords takes most of a second each."""
    from django.conf import settings

    if "PYTEST_XDIST_WORKER" in os.environ:  # its own name would make sockets' paths too long
        config.option.basetemp = STATE / "t"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    post_migrate.connect(put_back)


def put_back(sender: AppConfig, **_: object) -> None:
    """Put back what migrations had put in: a test with real transactions empties every table.

    Django sends this signal after that, too, whoever asked for such a test and how.
    """
    if sender.label != "annotation":
        return
    from annotation.models import Consent, Project

    if not Consent.objects.exists():
        import_module("annotation.migrations.0003_recordings").first_consent(apps, None)
    if not Project.objects.exists():
        import_module("annotation.migrations.0004_contributing").only_project(apps, None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n 2`, keep together what shares a computer, a server or a whole Tandem."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith("tests/e2e/"):
                return "tests/e2e"
            module, _, test = nodeid.partition("::")
            if module == "tests/contracts/test_provider.py":  # minutes, and each kind by itself
                module += re.split(r"[\[\]-]", f"{test}[")[1]
            return module

    return Together(config, log)


@contextmanager
def running(service: Service, account: Account | None) -> Iterator[None]:
    log = STATE / "log" / f"{service.name}.log"
    service.prepare()
    process = launch(service, log=log, account=account)
    try:
        wait_ready(service, process, log=log, deadline_s=60)
        yield
    finally:
        stop(service, process)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    account = unprivileged()
    cluster = Postgres(
        data=STATE / "postgres",
        port=free_port(),
        password=secrets.token_hex(8),
        account=account,
        install=reachable(account, STATE / "binaries"),
        sync=False,
    )
    with running(cluster, account):
        cluster.make_database("tandem")
        yield cluster


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """A Valkey of this run; point BROKER_URL or CHANNEL_LAYERS at it."""
    account = unprivileged()
    server = Valkey(
        STATE / "valkey", free_port(), secrets.token_hex(8), account, valkey.installed()
    )
    with running(server, account):
        yield server.url()


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """An S3 of this run, as a STORAGE_URL. Without it settings.STORAGE_URL is a folder."""
    account = unprivileged()
    store = ObjectStore(
        STATE / "s3", free_ports(PORTS), secrets.token_hex(8), secrets.token_hex(16),
        secrets.token_hex(16), account, s3.installed(),
    )  # fmt: skip
    with running(store, account):
        yield store.url()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres: Postgres) -> None:
    """Send Django's test database to the cluster of this run, which starts with the first such test."""
    from django.db import connections

    connections["default"].settings_dict.update(
        HOST="127.0.0.1", PORT=str(postgres.port), USER=postgres.user,
        PASSWORD=postgres.password, NAME="tandem",
    )  # fmt: skip


@pytest.fixture
def child_environment(db_url: str) -> dict[str, str]:
    """The environment for a child process that works on the test database."""
    return {
        **os.environ,
        "DATABASE_URL": db_url,
        "PATH": f"{os.path.dirname(sys.executable)}:{os.environ.get('PATH', os.defpath)}",
    }


@pytest.fixture
def db_url(transactional_db: None, postgres: Postgres) -> str:
    """The test database's address, for tests whose rows other processes must see."""
    from django.db import connection

    return postgres.url(str(connection.settings_dict["NAME"]))


def _person(name: str, *, group: str = "", **extra: Any) -> Any:
    from django.contrib.auth.models import Group, User

    user = User.objects.create_user(name, password=f"{name}-password", **extra)
    if group:
        user.groups.add(Group.objects.get_or_create(name=group)[0])
    return user


@pytest.fixture
def annotator(db: None) -> Any:
    return _person("annotator", group="annotator")


@pytest.fixture
def reviewer(db: None) -> Any:
    return _person("reviewer", group="reviewer")


@pytest.fixture
def stranger(db: None) -> Any:
    """Somebody with an account and no role."""
    return _person("stranger")


@pytest.fixture
def admin_user(db: None) -> Any:
    return _person("admin", is_staff=True, is_superuser=True)
