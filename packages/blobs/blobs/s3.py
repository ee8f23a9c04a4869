"""Blobs in anything that speaks S3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from blobs.store import (
    BlobError,
    MissingBlob,
    StoreUnreachable,
    blob_key,
    checked,
    safe_key,
    sha256_of,
)


class S3BlobStore:
    """One bucket; the bucket must exist. Safe to use from several threads."""

    def __init__(self, *, endpoint: str, bucket: str, key: str, secret: str, region: str) -> None:
        self.endpoint = endpoint
        self.bucket = bucket
        # A session of its own: boto3's default one is not safe to build clients from in threads.
        self._s3: Any = boto3.session.Session().client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            region_name=region,
            config=Config(
                s3={"addressing_style": "path"},
                signature_version="s3v4",
                retries={"mode": "standard", "max_attempts": 3},
                connect_timeout=5,
                read_timeout=60,
                max_pool_connections=16,
            ),
        )

    def put(self, data: bytes) -> str:
        sha256 = sha256_of(data)
        key = blob_key(sha256)
        with self._errors(key):
            try:
                self._s3.put_object(Bucket=self.bucket, Key=key, Body=data, IfNoneMatch="*")
            except ClientError as error:
                # 412: it is there already, under a name that only these bytes can have.
                # 409: somebody else is putting the same bytes at this moment.
                if _status(error) not in {409, 412}:
                    raise
        return sha256

    def get(self, sha256: str) -> bytes:
        return checked(sha256, self.get_object(blob_key(sha256)))

    def exists(self, sha256: str) -> bool:
        key = blob_key(sha256)
        try:
            with self._errors(key):
                self._s3.head_object(Bucket=self.bucket, Key=key)
        except MissingBlob:
            return False
        return True

    def put_object(self, key: str, source: bytes | Path) -> str:
        key = self._key(key)
        with self._errors(key):
            if isinstance(source, Path):
                self._s3.upload_file(str(source), self.bucket, key)  # in parts where it is large
            else:
                self._s3.put_object(Bucket=self.bucket, Key=key, Body=source)
        return self.uri(key)

    def get_object(self, key: str) -> bytes:
        key = self._key(key)
        with self._errors(key):
            answer = self._s3.get_object(Bucket=self.bucket, Key=key)
            return bytes(answer["Body"].read())

    def fetch(self, key: str, target: Path) -> None:
        key = self._key(key)
        with self._errors(key):
            self._s3.download_file(self.bucket, key, str(target))

    def put_folder(self, prefix: str, folder: Path) -> str:
        prefix = self._key(prefix)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put_object(f"{prefix}/{path.relative_to(folder).as_posix()}", path)
        return self.uri(prefix)

    def get_folder(self, prefix: str, folder: Path) -> list[Path]:
        prefix = self._key(prefix)
        keys = self.list_keys(f"{prefix}/")
        if not keys:
            raise MissingBlob(f"{self.uri(prefix)} holds nothing")
        written = []
        for key in keys:
            target = folder / safe_key(key.removeprefix(f"{prefix}/"))
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f".partial-{target.name}")
            with self._errors(key):
                self._s3.download_file(self.bucket, key, str(partial))
            partial.replace(target)
            written.append(target)
        return written

    def delete(self, key: str) -> None:
        key = self._key(key)
        with self._errors(key):
            self._s3.delete_object(Bucket=self.bucket, Key=key)

    def list_keys(self, prefix: str = "") -> list[str]:
        with self._errors(prefix):
            pages = self._s3.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=prefix
            )
            return sorted(entry["Key"] for page in pages for entry in page.get("Contents", []))

    def uri(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def _key(self, key: str) -> str:
        if key.startswith("s3://"):
            if not key.startswith(f"s3://{self.bucket}/"):
                raise BlobError(f"{key} lies outside of s3://{self.bucket}")
            key = key.removeprefix(f"s3://{self.bucket}/")
        return safe_key(key)

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            if _status(error) == 404 and error.response["Error"].get("Code") != "NoSuchBucket":
                raise MissingBlob(f"{self.uri(key)} does not exist") from error
            raise StoreUnreachable(f"{self.endpoint} refused {self.uri(key)}: {error}") from error
        except (BotoCoreError, boto3.exceptions.Boto3Error) as error:
            raise StoreUnreachable(
                f"{self.endpoint} does not answer ({error}): is it up, is STORAGE_URL right?"
            ) from error


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
