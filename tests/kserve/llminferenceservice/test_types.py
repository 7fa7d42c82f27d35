"""Number of pods per replica, and kinds of parallelism (KS-1.3)."""

from __future__ import annotations

import pytest

from app.kserve.llminferenceservice.types import ParallelismSpec, WorkloadSpec


def parallelism(**numbers: int | None) -> ParallelismSpec:
    """Return unvalidated parallelism, as in a merged spec; numbers may be below 1."""
    return ParallelismSpec.model_construct(None, **numbers)


@pytest.mark.parametrize(
    ("pipeline", "data", "local", "size"),
    [
        (None, 4, 1, 4),
        (None, 10, 2, 5),
        (None, 1, 8, 1),
        (None, 32, 8, 4),
        (None, 16, 8, 2),
        (None, 5, None, 5),
        (None, None, 8, 1),
        (2, None, None, 2),
        (3, 4, 2, 2),
        (None, None, None, None),
        (0, 0, 0, None),
    ],
)
def test_pods_per_replica(pipeline: int | None, data: int | None, local: int | None, size: int | None) -> None:
    """Data parallelism takes precedence over pipeline parallelism; without either, the size is not set."""
    given = parallelism(pipeline=pipeline, data=data, data_local=local)
    assert WorkloadSpec.model_construct(None, parallelism=given).pods_per_replica == size


def test_kinds_of_parallelism() -> None:
    """Either of ``data`` and ``dataLocal`` makes a group data-parallel."""
    assert parallelism(data_local=2).is_data_parallel
    assert parallelism(data=1).is_data_parallel
    assert not parallelism(data_local=0).is_data_parallel
    assert parallelism(pipeline=2).is_pipeline_parallel
    assert WorkloadSpec.model_construct(None).pods_per_replica is None
