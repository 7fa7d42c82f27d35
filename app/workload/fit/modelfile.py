"""Facts in a file of a model: its ``config.json``, the index of its safetensors, or the header of a GGUF file.

Keys of configurations are those of Transformers (https://huggingface.co/docs/transformers/main_classes/configuration);
those of GGUF are in :mod:`app.workload.fit.ggufheader`. A configuration that describes its layers in a way that is not
known here has a cache of at most all layers.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from app.workload.fit import ggufheader, modelconfig
from app.workload.fit.modelfacts import ModelFacts


class ModelFileError(ValueError):
    """A file tells nothing of a model; the message has the reason."""


def facts_in(paths: Sequence[str]) -> ModelFacts:
    """Return what files of one model tell together. Raises :class:`ModelFileError`."""
    facts = ModelFacts()
    for path in paths:
        file_facts = _facts(Path(path))
        facts = replace(facts, **{name: value for name, value in _fields(file_facts) if value})
    return facts


def _fields(facts: ModelFacts) -> list[tuple[str, Any]]:
    return [(name, getattr(facts, name)) for name in facts.__struct_fields__]


def _facts(path: Path) -> ModelFacts:
    try:
        with path.open("rb") as file:
            if file.read(4) == ggufheader.MAGIC:
                return ggufheader.facts_of(path)
            file.seek(0)
            return _of_json(file.read(_LONGEST + 1))
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror}") from error
    except ggufheader.HeaderError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except ValueError as error:
        raise ModelFileError(f"{path}: {error}") from error


_LONGEST = 64 * 2**20
"""Bytes of the longest index; those of the largest models have some 10 MB."""


def _of_json(content: bytes) -> ModelFacts:
    try:
        document = json.loads(content) if len(content) <= _LONGEST else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, Mapping):
        raise ModelFileError(_EXPECTED)
    if isinstance(document.get("weight_map"), Mapping):
        return ModelFacts(size=_total(document))
    facts = modelconfig.facts_of(document)
    if facts is None:
        raise ModelFileError(_EXPECTED)
    return facts


_EXPECTED = "neither a model's config.json, nor the index of its safetensors, nor a GGUF file"


class _IndexMetadata(msgspec.Struct):
    total_size: float = 0


def _total(index: Mapping[str, Any]) -> int:
    try:
        return max(0, int(msgspec.convert(index.get("metadata") or {}, _IndexMetadata, strict=False).total_size))
    except (msgspec.ValidationError, OverflowError):
        return 0
