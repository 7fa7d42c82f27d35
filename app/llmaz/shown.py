"""Where a mistake is, under the name that upstream gives the place."""

from __future__ import annotations

from app.kube.field import Path


class UpstreamPath(Path):
    """A place that upstream's webhook reports by another path (LZ-6.3: some are odd).

    Programs that match on the path go on working, because it is what the error shows; the segments are the true ones,
    so that ``modelhooks validate`` points at the right line. The error's text names the true place too.
    """

    __slots__ = ("_shown", "_true")

    def __init__(self, shown: str, true: Path) -> None:
        super().__init__()
        self._shown = shown
        self._true = true

    @property
    def segments(self) -> tuple[str | int, ...]:
        return self._true.segments

    def __str__(self) -> str:
        return self._shown
