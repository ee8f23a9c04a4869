"""Log lines carry what they are about."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from pythonjsonlogger.json import JsonFormatter

from sandbox.logs import AboutFilter, about


@pytest.fixture
def lines() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(AboutFilter())
    handler.setFormatter(JsonFormatter("{levelname}{message}{about}", style="{"))
    logger = logging.getLogger("tests.about")
    logger.addHandler(handler)
    yield logger, out
    logger.removeHandler(handler)


def test_a_line_names_its_computer_its_lease_and_epoch(
    lines: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, out = lines
    with about(sandbox="desk-1"), about(lease=7, epoch=3):
        logger.warning("lost")
    logger.warning("outside")
    inside, outside = (json.loads(line) for line in out.getvalue().splitlines())
    assert (inside["sandbox"], inside["lease"], inside["epoch"]) == ("desk-1", 7, 3)
    assert inside["about"] == " sandbox=desk-1 lease=7 epoch=3"
    assert "lease" not in outside and outside["about"] == ""


def test_the_inner_block_ends_with_itself(lines: tuple[logging.Logger, io.StringIO]) -> None:
    logger, out = lines
    with about(sandbox="desk-1"):
        with about(sandbox="desk-2", epoch=0):
            logger.warning("inner")
        logger.warning("outer")
    inner, outer = (json.loads(line) for line in out.getvalue().splitlines())
    assert (inner["sandbox"], inner["epoch"]) == ("desk-2", 0)
    assert outer["sandbox"] == "desk-1" and "epoch" not in outer
