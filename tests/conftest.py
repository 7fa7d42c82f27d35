"""Settings for all tests: how Hypothesis searches for examples, and what garbage collection looks at."""

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow to generate and run an example, which is no failure. CI uses Hypothesis' own profile "ci",
# which is the same, but has the same examples in every run.
settings.register_profile("modelhooks", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("modelhooks")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: tests of the server wait for its deadlines, of several seconds each."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect ten thousand tests without looking for garbage among them, neither now nor in any later pass."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
