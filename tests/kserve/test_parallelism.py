"""The vectors of spec 1.3."""

from __future__ import annotations

import pytest

from app.kserve.parallelism import group_size, is_data_parallel, is_pipeline_parallel


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
def test_group_size(pipeline: int | None, data: int | None, local: int | None, size: int | None) -> None:
    """Data parallelism decides before pipeline parallelism; nothing set says nothing."""
    assert group_size(pipeline, data, local) == size


def test_kinds_of_parallelism() -> None:
    """Either half of data parallelism makes a group data-parallel."""
    assert is_data_parallel(None, 2)
    assert is_data_parallel(1, None)
    assert not is_data_parallel(None, 0)
    assert is_pipeline_parallel(2)
    assert not is_pipeline_parallel(None)
