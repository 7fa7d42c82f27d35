"""What the parallelism settings amount to. Source: kserve spec 1.3. Functions are total: absent is ``None``."""

from __future__ import annotations


def is_data_parallel(data: int | None, data_local: int | None) -> bool:
    """Whether one replica holds several copies of the model."""
    return (data or 0) > 0 or (data_local or 0) > 0


def is_pipeline_parallel(pipeline: int | None) -> bool:
    """Whether several nodes share the layers of one replica."""
    return (pipeline or 0) > 0


def group_size(pipeline: int | None, data: int | None, data_local: int | None) -> int | None:
    """Pods of one replica, the leader included; ``None`` where nothing says how many."""
    if is_data_parallel(data, data_local):
        return max(max(data or 1, 1) // max(data_local or 1, 1), 1)
    return pipeline if is_pipeline_parallel(pipeline) else None
