"""The vectors of KS-1.3."""

from __future__ import annotations

import pytest

from app.kserve.llminferenceservice.types import ParallelismSpec
from app.kserve.workload.topology import is_data_parallel, is_pipeline_parallel, pods_per_replica


def parallelism(**numbers: int | None) -> ParallelismSpec:
    """As a merged spec may have it, numbers below 1 included."""
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
    """Data parallelism decides before pipeline parallelism; nothing set says nothing."""
    assert pods_per_replica(parallelism(pipeline=pipeline, data=data, data_local=local)) == size


def test_kinds_of_parallelism() -> None:
    """Either half of data parallelism makes a group data-parallel."""
    assert is_data_parallel(parallelism(data_local=2))
    assert is_data_parallel(parallelism(data=1))
    assert not is_data_parallel(parallelism(data_local=0))
    assert is_pipeline_parallel(parallelism(pipeline=2))
    assert not is_pipeline_parallel(None)
    assert pods_per_replica(None) is None
