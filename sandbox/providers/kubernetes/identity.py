"""What a pod is told and its host knows: a certificate, a secret, a password; of one pod alone."""

from __future__ import annotations

import secrets
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LASTS = timedelta(days=30)
_BACKDATED = timedelta(minutes=5)  # clocks of two machines differ


@dataclass(frozen=True, slots=True)
class Identity:
    """`door` is PEM, key and certificate; `secret` opens the door; `password` is the screen's."""

    certificate: str
    door: str = field(repr=False)
    secret: str = field(repr=False)
    password: str = field(repr=False)

    def files(self) -> dict[str, bytes]:
        """Return the pod's files by name; "password" is for us, the pod needs "rfb.passwd" only."""
        scrambled = subprocess.run(
            ["vncpasswd", "-f"],
            input=f"{self.password}\n".encode(),
            capture_output=True,
            check=True,
        ).stdout
        return {
            "certificate": self.certificate.encode(),
            "door.pem": self.door.encode(),
            "secret": self.secret.encode(),
            "password": self.password.encode(),
            "rfb.passwd": scrambled,
        }


def make(name: str) -> Identity:
    """Return a fresh identity for the pod `name`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LASTS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM).decode()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    return Identity(
        certificate=public,
        door=private + public,
        secret=secrets.token_hex(32),
        password=secrets.token_urlsafe(6),
    )
