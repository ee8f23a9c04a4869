"""Our own authority and the certificates that hosts and callers show each other.

In a folder: `ca.pem` and `ca.key` (on one safe machine), `host.pem` on a sandbox host, `client.pem`
where web or workers run; the last two hold key and certificate. Private files are 0600. No Django.
"""

from __future__ import annotations

import os
import re
import ssl
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sandbox.provider import SandboxError

AUTHORITY_DAYS = 3650
DAYS = 90
"""How long a host's or a caller's certificate lasts. There is no list of revoked ones: renew often."""

_BACKDATED = timedelta(minutes=5)  # clocks of two machines differ
_DNS_NAME = re.compile(r"(?=.{1,63}$)[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_USE = {"host": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}
ROLES = tuple(_USE)


class CertificateProblem(SandboxError):
    """A certificate is missing, expired or not ours; the message names the file and the way out."""


def make_authority(folder: Path) -> bool:
    """Make `ca.pem` and `ca.key`; False if there is an authority already."""
    # It is written last: a key without it was made by somebody who was interrupted. A host has it
    # without the key, and must not get another one.
    if (folder / "ca.pem").exists():
        return False
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tandem sandbox authority")])
    certificate = (
        _builder(name, name, key, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(folder / "ca.key", _pem(key))
    _write(folder / "ca.pem", certificate.public_bytes(serialization.Encoding.PEM))
    return True


def issue(folder: Path, *, role: str, name: str, into: Path, days: int = DAYS) -> Path:
    """Write `into`/ROLE.pem for `name` with a fresh key, and `ca.pem` beside it; again renews it.

    A host's name is the one on its row, not its address. Raises CertificateProblem.
    """
    if not _DNS_NAME.fullmatch(name):
        raise CertificateProblem(f"{name!r} can't be named in a certificate: letters, digits, .-_")
    authority, authority_key = _authority(folder)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        _builder(subject, authority.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([_USE[role]]), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
        .sign(authority_key, hashes.SHA256())
    )
    into.mkdir(parents=True, exist_ok=True, mode=0o700)
    written = into / f"{role}.pem"
    _write(written, _pem(key) + certificate.public_bytes(serialization.Encoding.PEM))
    if into.resolve() != folder.resolve():
        _write(into / "ca.pem", (folder / "ca.pem").read_bytes())
    return written


def load(path: Path) -> x509.Certificate:
    """Return the certificate in a file; raises CertificateProblem."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except FileNotFoundError:
        raise CertificateProblem(f"{path} is missing: manage.py sandbox_ca makes it") from None
    except OSError as error:
        raise CertificateProblem(f"{path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise CertificateProblem(f"{path} holds no certificate: {error}") from error


def check(path: Path) -> timedelta:
    """Return for how long the certificate in `path` still holds; raises CertificateProblem."""
    certificate = load(path)
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    if left <= timedelta(0):
        raise CertificateProblem(
            f"{path} expired at {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC: "
            "renew it with manage.py sandbox_ca"
        )
    return left


def name_of(certificate: x509.Certificate) -> str:
    """Return whom a certificate is for."""
    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def server_context(folder: Path) -> ssl.SSLContext:
    """Return TLS for a gateway: 1.3 only, and callers must show a client certificate of ours."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    # A caller keeps its connections; resuming sessions would be state for nothing.
    context.num_tickets = 0
    return _ready(context, folder, "host")


def client_context(folder: Path) -> ssl.SSLContext:
    """Return TLS for a caller; kept until a certificate is renewed. Raises CertificateProblem."""
    check(folder / "ca.pem")
    check(folder / "client.pem")
    changed = tuple((folder / name).stat().st_mtime_ns for name in ("ca.pem", "client.pem"))
    return _client_context(folder, changed)


@lru_cache(maxsize=8)
def _client_context(folder: Path, changed: tuple[int, ...]) -> ssl.SSLContext:
    return _ready(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), folder, "client")


def _ready(context: ssl.SSLContext, folder: Path, role: str) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    own = folder / f"{role}.pem"
    check(folder / "ca.pem")
    check(own)
    try:
        context.load_verify_locations(folder / "ca.pem")
        context.load_cert_chain(own)
    except ssl.SSLError as error:
        raise CertificateProblem(f"{own} can't be used: {error}") from error
    return context


def _authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    check(folder / "ca.pem")
    try:
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), password=None)
    except FileNotFoundError:
        raise CertificateProblem(
            f"{folder / 'ca.key'} is missing: certificates are made where the authority lives"
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateProblem(f"{folder / 'ca.key'} is not a key of ours")
    return load(folder / "ca.pem"), key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, data: bytes) -> None:
    """Write the file whole, readable by its owner alone from the first moment."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    part.replace(path)
