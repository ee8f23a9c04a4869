import pytest

from blobs import BlobError, Damaged, DirectoryBlobStore, StoreUnreachable, open_store
from config.embedded.service import free_port


def test_the_same_address_gives_the_same_store(tmp_path):
    assert open_store(f"file://{tmp_path}") is open_store(f"file://{tmp_path}")


@pytest.mark.parametrize(
    "url", ["", "ftp://host/x", "s3://host", "s3://host/a/b", "file://relative/x"]
)
def test_an_address_that_is_none_is_refused_without_its_secret(url):
    with pytest.raises(BlobError, match="say s3://"):
        open_store(url.replace("s3://", "s3://key:hidden@")) if url else open_store(url)


def test_a_changed_blob_is_never_handed_out(tmp_path):
    store = DirectoryBlobStore(tmp_path)
    sha256 = store.put(b"as it was")
    (tmp_path / "blobs" / sha256[:2] / sha256).write_bytes(b"changed")
    with pytest.raises(Damaged, match=sha256[:12]):
        store.get(sha256)


def test_a_store_that_is_down_is_named():
    store = open_store(f"s3://k:s@127.0.0.1:{free_port()}/artifacts")
    with pytest.raises(StoreUnreachable, match="STORAGE_URL"):
        store.put(b"x")


def test_a_full_or_closed_folder_is_named(tmp_path):
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(StoreUnreachable):
        DirectoryBlobStore(tmp_path).put(b"x")


def test_an_object_that_could_not_be_written_leaves_nothing(tmp_path):
    store = DirectoryBlobStore(tmp_path / "store")
    with pytest.raises(StoreUnreachable):
        store.put_object("a/b", tmp_path / "gone")
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []
