"""How long what contributors give is kept: by the consent it was given under, and by the project."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from annotation.models import Consent, Project, Recording

STAYS = (Recording.Status.ACCEPTED, Recording.Status.WITHDRAWN)


@dataclass(frozen=True, slots=True)
class Retention:
    """Days after which a recording is deleted: whatever came of it, and if it is not accepted; 0: kept."""

    days: int
    unaccepted_days: int

    def sentences(self) -> list[str]:
        """Return what a contributor is told before they agree."""
        told = []
        if self.days:
            told.append(f"Everything you give is deleted {_days(self.days)} after you gave it.")
        if self.unaccepted_days and not (self.days and self.days <= self.unaccepted_days):
            told.append(
                f"What is not accepted is deleted {_days(self.unaccepted_days)} after you gave it."
            )
        if not self.days:
            told.append(
                f"{'What is accepted' if told else 'What you give'} is kept until you withdraw it."
            )
        return [*told, "You can withdraw it at any time on the page Recordings."]

    def ends(self, recording: Recording) -> datetime | None:
        """Return when a recording will be deleted as it stands; None where that is not set."""
        if recording.status == Recording.Status.WITHDRAWN:
            return None
        left = [self.days, 0 if recording.status in STAYS else self.unaccepted_days]
        counted = [days for days in left if days]
        return recording.created_at + timedelta(days=min(counted)) if counted else None


def under(consent: Consent) -> Retention:
    """Return what holds at this moment for recordings given under `consent`."""
    project = Project.objects.values_list("retain_days", flat=True).first() or 0
    return Retention(consent.retain_days, project)


def _days(count: int) -> str:
    return "a day" if count == 1 else f"{count} days"
