"""The shapes of widespread models, by their names.

``models.csv`` has one model a line: facts from the ``config.json`` of its repository on the Hugging Face Hub, such as
https://huggingface.co/Qwen/Qwen3-8B/blob/main/config.json. ``layers`` are those with a cache, ``queries`` the attention
heads, ``heads`` those for keys and values, ``state`` the mebibytes of a request in the other layers, ``share`` the part
of the tokens that layers keep, where they compress them, and ``source`` where the facts were read, if not there.
``python -m tools.models`` writes a line.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import resources
from itertools import islice

import msgspec
from msgspec.structs import replace

from app.kube.regex import regex

Ends = tuple[float, float]
"""A minimum and a maximum."""


class Shape(msgspec.Struct, frozen=True):
    """Dimensions that decide the size of a model and of its key-value cache; 0 for unknown ones."""

    layers: int
    """Layers with a cache: none in encoders, such as embedding models."""
    kv_heads: int
    head: int
    """Width of one head."""
    context: int = 0
    """Tokens that the model was trained with."""
    billions: Ends = (0, 0)
    """Number of parameters. A file in GGUF lacks those for images."""
    ends: Ends = (1, 1)
    """Bounds of the cache as a share of layers x heads x width, where these are a guess."""
    queries: int = 0
    """Attention heads, which tensor parallelism divides among GPUs."""
    windowed: int = 0
    """Layers whose cache may be limited to a window of tokens, of those above."""
    window: int = 0
    windowed_heads: int = 0
    """Key-value heads of layers with a window, and their width, where they differ."""
    windowed_width: int = 0
    is_latent: bool = False
    """Keys and values are one vector, which each GPU needs whole (multi-head latent attention)."""
    index: int = 0
    """Bytes of each token and layer for the index of sparse attention."""
    state: int = 0
    """Bytes of each request for layers without a cache: linear attention, Mamba and convolutions."""
    bits: Ends | None = None
    """Bits per weight of a repository that is published with quantization."""
    format: str = ""
    """That quantization, such as ``fp8``."""


_BETWEEN = "(?:-(?:instruct|chat|coder|math|base|hf|it))*"
"""Words between a family and a size that change neither."""
_OTHERS = regex(
    r"(?<![a-z0-9])(?:adapter|audio|distill|draft|eagle\d?|embedding|flash|guard|lite|lora|medusa|mini|moe|multimodal"
    r"|next|omni|reranker|sparse|speculator|vision|vl)(?![a-z0-9])"
)
"""Words in the names of models whose shape differs from the model that they are named after."""
_SIZE = regex(r"(?<![a-z0-9.])([0-9]{1,4}(?:\.[0-9]{1,3})?)b(?![a-z0-9]|-[0-9]+e)")
"""Another number of parameters: ``deepseek-r1-qwen-14b``."""
_LONGER = regex(r"(?<![a-z0-9])(?:2507|[0-9]+k|1m)(?![a-z0-9])")
"""Words in the names of models whose context differs from the model that they are named after."""
_AS_PUBLISHED = regex(r"(?:-(?:base|zero|chat|0324|0528|0905|terminus|latest|[0-9.]+))*-?")
_SEPARATORS = regex("[^a-z0-9.]+")
_LONGEST_NAME, _MOST_NAMES = 512, 16


def _pattern(model: str) -> str:
    """Return a pattern of a model's name. Some write ``llama3``, ``gemma2`` or ``granite-3-1``."""
    escaped = re.sub(r"-(?=[0-9.]+[bm]\b)", f"{_BETWEEN}-", model).replace(".", "[.-]")
    return re.sub(r"^(llama|gemma|phi|qwen|granite|falcon|smollm)-?(?=[0-9])", r"\1-?", escaped)


def _ends(text: str) -> Ends:
    least, _, most = text.partition("-")
    return (float(least), float(most)) if most else (float(least or 0) * 0.99, float(least or 0) * 1.01)


def _bounds(text: str) -> Ends:
    least, _, most = text.partition("-")
    return float(least), float(most or least)


def _shape(row: dict[str, str]) -> Shape:
    is_latent = row["heads"] == "latent"
    return Shape(
        layers=int(row["layers"]),
        kv_heads=1 if is_latent else int(row["heads"] or 0),
        head=int(row["width"] or 0),
        context=int(row["context"]),
        billions=_ends(row["billions"]),
        queries=int(row["queries"]),
        windowed=int(row["windowed"] or 0),
        window=int(row["window"] or 0),
        windowed_heads=int(row["windowed_heads"] or 0),
        windowed_width=int(row["windowed_width"] or 0),
        is_latent=is_latent,
        index=int(row["index"] or 0),
        state=int(row["state"] or 0) * 2**20,
        bits=_ends(row["bits"]) if row["bits"] else None,
        format=row["format"],
        ends=_bounds(row["share"]) if row["share"] else (1, 1),
    )


_ROWS = sorted(
    csv.DictReader(resources.files(__package__).joinpath("models.csv").read_text(encoding="utf-8").splitlines()),
    key=lambda row: -len(row["name"]),
)
SHAPES = {row["repository"]: _shape(row) for row in _ROWS}
"""Shapes of models by repository."""


_RUNS = regex("[a-z]+|[0-9]+")
_PARTS = [(row, frozenset(_RUNS.findall(row["name"]))) for row in _ROWS]
"""The models with the words and numbers of their names, which no pattern varies."""


def _pattern_of(rows: Sequence[dict[str, str]]) -> re.Pattern[str]:
    """Return a pattern of the names of some models. All names take long to compile."""
    alternatives = "|".join(f"{_pattern(row['name'])}()" for row in rows)  # a group around each takes much longer
    return re.compile(rf"(?<![a-z0-9])(?:{alternatives})(?![a-z0-9]|\.[0-9])")


def shape_of(names: Iterable[str]) -> Shape | None:
    """Return the shape of the first name of a known model, or of a model made from one."""
    normalized = (_SEPARATORS.sub("-", name[-_LONGEST_NAME:].lower()) for name in islice(names, _MOST_NAMES))
    return next((shape for name in normalized if (shape := _shape_of(name)) is not None), None)


@lru_cache(maxsize=256)
def _shape_of(normalized: str) -> Shape | None:
    words = {*_RUNS.findall(normalized)}
    rows = [row for row, parts in _PARTS if parts <= words]
    match = _pattern_of(rows).search(normalized) if rows else None
    if match is None or match.lastindex is None:
        return None
    before, after = normalized[: match.start()], normalized[match.end() :]
    shape = SHAPES[rows[match.lastindex - 1]["repository"]]
    if any(_OTHERS.search(rest) or _has_other_size(rest, shape) for rest in (before, after)):
        return None
    if _LONGER.search(after):
        shape = replace(shape, context=0)
    if shape.bits and not _AS_PUBLISHED.fullmatch(after):
        shape = replace(shape, bits=(shape.bits[0], 16.1), format="")
    return shape


def _has_other_size(text: str, shape: Shape) -> bool:
    least, most = shape.billions
    return bool(most) and not all(least * 0.9 <= float(number) <= most * 1.1 for number in _SIZE.findall(text))
