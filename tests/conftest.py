"""Settings for all tests: how Hypothesis searches for examples, what coverage counts, and what is garbage."""

import gc
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow to generate and run an example, which is no failure. CI uses Hypothesis' own profile "ci",
# which is the same, but has the same examples in every run.
settings.register_profile("modelhooks", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("modelhooks")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect ten thousand tests without looking for garbage among them, neither now nor in any later pass."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


COUNTED_CASES = 100
"""Number of cases of each test that coverage counts. More reach few more lines, and counting triples their time."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Exclude property tests, and all but the first cases of other tests, from coverage."""
    cases: Counter[object] = Counter()
    for item in items:
        if isinstance(item, pytest.Function):
            cases[item.function] += 1
            if cases[item.function] > COUNTED_CASES or item.get_closest_marker("hypothesis"):
                item.add_marker(pytest.mark.no_cover)
