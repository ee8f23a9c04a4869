"""Eight times the length through the real client to the real server: what grows is counted in bytes a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from annotation.models import Recording
from benchmarks.long_made import write
from benchmarks.long_recording import server, stages
from benchmarks.long_stages import memory
from tests.annotation.test_recordings_upload import token_of

MINUTES = 0.75
# What may grow: a file's line in the manifest on both sides, a step's row.
FILE, STEP = 6_000, 12_000
ROOM = 4 << 20  # an interpreter's own ups and downs


@pytest.mark.timeout(180)
def test_upload_and_the_server_s_stages_take_no_more_memory(
    child_environment: dict[str, str], tmp_path: Path, stranger: Any, settings: Any
) -> None:
    pytest.importorskip("av", reason="FFmpeg's libraries: pip install 'tandem[speech]'")
    token = token_of(stranger)
    env = {**child_environment, "TANDEM_STATE": str(tmp_path / "state")}
    grew: list[dict[str, int]] = []
    files = steps = 0
    with server(env) as (address, (pid, _)):
        for minutes in (MINUTES, 8 * MINUTES):
            folder = write(tmp_path / "made", minutes, voice=False).path
            stages(["confirm"], folder)
            before = memory("VmRSS", str(pid))
            found = stages(["upload"], folder, address, token, env)
            served = memory("VmHWM", str(pid)) - before
            row = Recording.objects.get(name=folder.name)
            assert row.status == Recording.Status.UPLOADED
            found |= stages(["check", "hear", "align", "zip"], folder, env=env)
            row.refresh_from_db()
            assert (row.status, row.cause) == (Recording.Status.IN_REVIEW, "")
            assert row.utterances.count() > 5 * minutes / 6 and row.heard == 100
            files, steps = row.files.count(), row.steps.count()
            grew.append({n: f["peak"] - f["before"] for n, f in found.items()} | {"server": served})
    allowed = files * FILE + steps * STEP + ROOM
    few, many = grew
    assert {n: many[n] for n in many if many[n] > few[n] + allowed} == {}
    with transaction.atomic():
        row.delete()
