"""The annotation by which an engine fetches the weights itself. Source: LZ-1.3, LZ-2.6 and LZ-N32."""

from __future__ import annotations

from collections.abc import Iterator

from app.kube import field
from app.kube.objects import ObjectMeta
from app.llmaz.names import SKIP_LOADER


def skips_loader(metadata: ObjectMeta) -> bool:
    """Whether no loader and no volume is wanted; only the literal ``true`` says so."""
    return (metadata.annotations or {}).get(SKIP_LOADER) == "true"


def annotation_warnings(metadata: ObjectMeta) -> Iterator[str]:
    value = (metadata.annotations or {}).get(SKIP_LOADER)
    if value not in (None, "true", "false"):
        where = field.Path("metadata").child("annotations").key(SKIP_LOADER)
        yield f'{where}: {field.go_quote(value)} has no effect, only "true" has'
