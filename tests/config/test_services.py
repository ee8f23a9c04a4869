import pytest
import redis
from django.contrib.auth.models import User
from django.db import connection

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
    assert valkey.binary().exists()
    assert s3.binary().exists()
