"""`manage.py sandbox_ca`: the certificates by which sandbox hosts and their callers know each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from sandbox.gateway import certificates
from sandbox.gateway.certificates import CertificateProblem

_SOON_DAYS = 14


class Command(BaseCommand):
    help = (
        "Make the authority (init), a certificate for a sandbox host (host NAME, the name on its row) "
        "or for web and workers (client NAME), or say what is there (show). Saying it again renews."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=("init", *certificates.ROLES, "show"))
        parser.add_argument("name", nargs="?", default="")
        parser.add_argument("--folder", type=Path, default=settings.SANDBOX_TLS)
        parser.add_argument(
            "--into", type=Path, help="where to write: copy it to that machine; default: --folder"
        )
        parser.add_argument("--days", type=int, default=certificates.DAYS)

    def handle(self, *args: Any, **options: Any) -> None:
        what, folder, name = options["what"], options["folder"], options["name"]
        try:
            if what == "show":
                return self._show(folder)
            if what == "init":
                made = certificates.make_authority(folder)
                return self.stdout.write(f"{folder}: {'made' if made else 'is there already'}")
            if not name:
                raise CommandError(f"whose? say: sandbox_ca {what} NAME")
            if not 0 < options["days"] <= certificates.AUTHORITY_DAYS:
                raise CommandError(f"--days must be 1 to {certificates.AUTHORITY_DAYS}")
            certificates.make_authority(folder)
            into = options["into"] or folder
            written = certificates.issue(
                folder, role=what, name=name, into=into, days=options["days"]
            )
            self.stdout.write(f"{written} for {name}, {options['days']} days")
        except CertificateProblem as error:
            raise CommandError(str(error)) from error

    def _show(self, folder: Path) -> None:
        found = sorted(folder.glob("*.pem"))
        if not found:
            raise CommandError(f"{folder} holds no certificates: say manage.py sandbox_ca init")
        for path in found:
            certificate = certificates.load(path)
            days = certificates.check(path).days
            soon = "  renew it soon" if days < _SOON_DAYS else ""
            self.stdout.write(
                f"{path.name}: {certificates.name_of(certificate)}, {days} days left{soon}"
            )
