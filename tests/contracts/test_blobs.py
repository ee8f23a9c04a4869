"""What every blob store promises, proved on a folder and on a real S3."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from blobs import BlobError, BlobStore, MissingBlob, open_store


@pytest.fixture(params=["directory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    if request.param == "s3":
        return open_store(request.getfixturevalue("s3_url"))
    return open_store(f"file://{tmp_path / 'store'}")


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """A place of this test's own: the S3 lives as long as the run."""
    return hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]


def test_bytes_come_back_under_their_sha256(store, prefix):
    data = prefix.encode() + bytes(range(256)) * 400
    sha256 = store.put(data)
    assert sha256 == hashlib.sha256(data).hexdigest()
    assert store.exists(sha256)
    assert store.get(sha256) == data
    assert store.list_keys(f"blobs/{sha256[:2]}/{sha256}") == [f"blobs/{sha256[:2]}/{sha256}"]


def test_the_same_bytes_are_stored_once_whoever_stores_them(store, prefix):
    data = b"the same picture " + prefix.encode()
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(store.put, [data] * 16))) == 1
    assert store.get(store.put(data)) == data


def test_what_is_not_there_is_named(store, prefix):
    absent = hashlib.sha256(prefix.encode()).hexdigest()
    assert not store.exists(absent)
    with pytest.raises(MissingBlob, match=absent):
        store.get(absent)
    with pytest.raises(MissingBlob, match="nothing/here"):
        store.get_object("nothing/here")
    with pytest.raises(MissingBlob, match="holds nothing"):
        store.get_folder("nothing", Path("/nonexistent"))
    assert store.list_keys("nothing/") == []


def test_what_is_deleted_is_gone_by_key_or_uri_and_deleting_it_again_is_fine(store, prefix):
    one, two = (store.put_object(f"{prefix}/gone/{n}", b"x") for n in (1, 2))
    kept = store.put_object(f"{prefix}/kept", b"y")
    for _ in range(2):
        store.delete(one)
        store.delete(f"{prefix}/gone/2")
    assert store.list_keys(f"{prefix}/gone/") == []
    with pytest.raises(MissingBlob):
        store.get_object(two)
    assert store.get_object(kept) == b"y"
    with pytest.raises(BlobError):
        store.delete("../outside")


def test_an_object_is_replaced_and_read_by_key_or_uri(store, prefix):
    key = f"{prefix}/datasets/one.jsonl"
    store.put_object(key, b"first")
    uri = store.put_object(key, b"second")
    assert uri == store.uri(key)
    assert store.get_object(key) == store.get_object(uri) == b"second"


def test_an_object_is_written_to_a_file(store, prefix, tmp_path):
    uri = store.put_object(f"{prefix}/sound", b"\0" * (9 << 20))
    store.fetch(uri, tmp_path / "sound")
    assert (tmp_path / "sound").read_bytes() == b"\0" * (9 << 20)
    with pytest.raises(MissingBlob):
        store.fetch(f"{prefix}/none", tmp_path / "none")
    with pytest.raises(BlobError):
        store.fetch("../secret", tmp_path / "none")


def test_a_folder_travels_whole(store, prefix, tmp_path):
    folder = tmp_path / "checkpoint"
    (folder / "inner").mkdir(parents=True)
    (folder / "tandem.json").write_text("{}")
    (folder / "inner" / "weights.bin").write_bytes(b"\0" * (9 << 20))  # over S3's limit of one part
    uri = store.put_folder(f"{prefix}/step-1", folder)
    store.put_object(f"{prefix}/step-10/other", b"not ours")
    back = tmp_path / "back"
    written = store.get_folder(uri, back)
    assert sorted(path.relative_to(back).as_posix() for path in written) == [
        "inner/weights.bin", "tandem.json",
    ]  # fmt: skip
    assert (back / "inner" / "weights.bin").read_bytes() == b"\0" * (9 << 20)
    assert store.list_keys(f"{prefix}/step-1/") == [
        f"{prefix}/step-1/inner/weights.bin", f"{prefix}/step-1/tandem.json",
    ]  # fmt: skip


@pytest.mark.parametrize("key", ["", "/etc/passwd", "../secret", "a//b", "a/./b", "s3://other/key"])
def test_a_key_never_leaves_the_store(store, key):
    with pytest.raises(BlobError):
        store.put_object(key, b"x")


def test_a_name_that_is_no_sha256_is_missing(store):
    for name in ("", "../../etc/passwd", "A" * 64):
        with pytest.raises(MissingBlob):
            store.get(name)


def test_a_uri_tells_no_secret(store, request):
    assert "@" not in store.uri("a/b")
