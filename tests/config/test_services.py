import re
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import redis
from django.contrib.auth.models import User
from django.db import connection

from blobs import open_store
from config.embedded import s3, valkey


@pytest.mark.django_db
def test_the_database_is_a_postgresql_of_this_run(annotator, stranger):
    assert connection.vendor == "postgresql"
    assert connection.pg_version >= 180000
    assert list(annotator.groups.values_list("name", flat=True)) == ["annotator"]
    assert User.objects.count() == 2


def test_valkey_answers_and_wants_its_password(valkey_url):
    client = redis.Redis.from_url(valkey_url)
    assert client.ping()
    port = client.connection_pool.connection_kwargs["port"]
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=port).ping()


def test_the_packages_hold_their_binaries():
    assert valkey.installed().exists()
    assert s3.installed().exists()


def test_nobody_reads_objects_without_a_key(s3_url):
    """Neither over S3 nor over the filer's own HTTP, which `weed mini` cannot switch off."""
    store = open_store(s3_url)
    store.put_object("private/note", b"secret")
    port = urlsplit(s3_url).port
    assert httpx.get(f"http://127.0.0.1:{port}/artifacts/private/note").status_code == 403
    arguments = [
        argument
        for entry in Path("/proc").glob("[0-9]*/cmdline")
        if f"-s3.port={port}".encode() in (words := _read(entry).split(b"\0"))
        for argument in words
    ]
    filer = next(a.partition(b"=")[2] for a in arguments if a.startswith(b"-filer.port="))
    address = f"http://127.0.0.1:{int(filer)}/buckets/artifacts/private/note"
    assert httpx.get(address).status_code == 401


@pytest.mark.django_db
def test_every_page_carries_the_policy_and_no_inline_script(client):
    answer = client.get("/accounts/login/")
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(rb"<script(?![^>]*\bsrc=)", answer.content)
    assert b" onclick=" not in answer.content


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
