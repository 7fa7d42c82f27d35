"""The number of a service's pods follows its load."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

pytestmark = pytest.mark.node


def test_load_makes_a_second_pod_and_silence_takes_it_away(scaling: Future[None]) -> None:
    """`tests/node/scaling.py` has run beside the tests of the other modules."""
    scaling.result()
