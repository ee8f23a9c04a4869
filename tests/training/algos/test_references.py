"""Every function gives what the public implementations of the same formula give."""

from __future__ import annotations

import pytest

from tests.training.algos.compare import COMPARISONS, LIMIT, ROUGHER


@pytest.mark.parametrize("name", COMPARISONS)
def test_agrees(name):
    differences = list(COMPARISONS[name]())
    assert differences
    assert max(differences) <= ROUGHER.get(name, LIMIT)
