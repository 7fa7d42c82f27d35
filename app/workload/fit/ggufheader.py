"""The header of a GGUF file: the shape of its model, and the size of its weights.

The format is described in ggml's repository (https://github.com/ggml-org/ggml). The beginning of a file is enough, up
to the list of its tensors: the size follows from them, and the rest of the file is not read.
"""

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from app.workload.fit.modelfacts import ModelFacts
from app.workload.fit.models import Shape
from app.workload.ggufparts import parts_of

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY, _EACH = 8, 9, 1024
"""Types of values, and the number of items above which an array of numbers is passed over."""
_LONGEST, _MOST = 2**20, 2**24
_BLOCKS = {
    **{type_: (1, size) for type_, size in ((0, 4), (1, 2), (24, 1), (25, 2), (26, 4), (27, 8), (28, 8), (30, 2))},
    **{type_: (32, size) for type_, size in ((2, 18), (3, 20), (6, 22), (7, 24), (8, 34), (9, 40), (20, 18), (39, 17))},
    **{type_: (256, size) for type_, size in ((10, 84), (11, 110), (12, 144), (13, 176), (14, 210), (15, 292))},
    **{type_: (256, size) for type_, size in ((16, 66), (17, 74), (18, 98), (19, 50), (21, 110), (22, 82), (23, 136))},
    **{type_: (256, size) for type_, size in ((29, 56), (34, 54), (35, 66))},
    40: (64, 36),
    41: (128, 18),
}
"""The weights of a block, and its bytes, by the type of a tensor: GGML_QUANT_SIZES of the package gguf."""
_PERIODS = {"gemma2": 2, "gemma3": 6, "cohere2": 4, "gpt-oss": 2, "llama4": 4, "exaone4": 4, "olmo2": 4}
"""Architectures of which one layer of so many has no window, where the header does not list them."""


_CUT = "the header of the GGUF file is not whole"


class HeaderError(ValueError):
    """The header cannot be read."""


def facts_of(path: Path) -> ModelFacts:
    """Return what the header of a file, and those of its other parts beside it, tell. Raises :class:`HeaderError`."""
    keys, size = _read(path)
    architecture = str(keys.get("general.architecture", ""))
    metadata = {name.removeprefix(f"{architecture}."): value for name, value in keys.items()}
    others = [path.with_name(part) for part in parts_of(path.name) if part != path.name]
    if others or _number(keys, "split.count") > 1:
        is_whole = bool(others) and all(part.is_file() for part in others)
        size = size + sum(_read(part)[1] for part in others) if is_whole else 0
    shape = _shape(architecture, metadata)
    return ModelFacts(shape=shape, size=size, keeps_latent=shape.is_latent and "attention.key_length_mla" in metadata)


def _read(path: Path) -> tuple[Mapping[str, Any], int]:
    """Return the keys of a header and the bytes of the tensors."""
    with path.open("rb") as file:
        try:
            return _HeaderReader(file).header()
        except (struct.error, UnicodeDecodeError, OverflowError) as error:
            raise HeaderError(_CUT) from error


class _HeaderReader:
    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def header(self) -> tuple[Mapping[str, Any], int]:
        magic, version = self.file.read(4), self.number("I")
        if magic != MAGIC or version not in _VERSIONS:
            raise HeaderError("no GGUF file of version 2 or 3")
        tensors, count = self.number("Q"), self.number("Q")
        if max(tensors, count) > _MOST:
            raise HeaderError(_CUT)
        keys = {}
        for _ in range(count):
            name = self.text()
            keys[name] = self.value(self.number("I"))
        return keys, sum(self.tensor() for _ in range(tensors))

    def number(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self.file.read(struct.calcsize(form)))[0]

    def text(self) -> str:
        length = self.number("Q")
        if length > _LONGEST * 16:
            raise HeaderError(_CUT)
        content = self.file.read(length)
        return content[:_LONGEST].decode(errors="replace")

    def value(self, type_: int) -> Any:
        if type_ == _TEXT:
            return self.text()
        if type_ != _ARRAY:
            return self.number(self._form(type_))
        item, length = self.number("I"), self.number("Q")
        if length > _MOST:
            raise HeaderError(_CUT)
        read: Callable[[], Any] = self.text if item == _TEXT else lambda: self.number(self._form(item))
        return [read() for _ in range(length)] if item == _TEXT or length <= _EACH else self._skip(item, length)

    def _skip(self, item: int, length: int) -> list[Any]:
        self.file.seek(struct.calcsize(self._form(item)) * length, 1)
        return []

    def _form(self, type_: int) -> str:
        form = _SCALARS.get(type_)
        if form is None:
            raise HeaderError(f"a key of the GGUF file is of the unknown type {type_}")
        return form

    def tensor(self) -> int:
        """Return the bytes of the next tensor of the list."""
        self.text()
        elements = 1
        for _ in range(min(self.number("I"), 8)):
            elements *= self.number("Q")
        type_ = self.number("I")
        self.number("Q")
        block = _BLOCKS.get(type_)
        if block is None:
            raise HeaderError(f"a tensor of the GGUF file is of the unknown type {type_}")
        return elements // block[0] * block[1]


def _number(keys: Mapping[str, Any], name: str) -> int:
    value = keys.get(name)
    return value if type(value) is int and value > 0 else 0


def _each(keys: Mapping[str, Any], name: str, layers: int) -> list[int]:
    """Return the number of a key for each layer; it may be one for all."""
    value = keys.get(name)
    if isinstance(value, list):
        return [item if type(item) is int else 0 for item in value[:layers]]
    return [_number(keys, name)] * layers


def _shape(architecture: str, keys: Mapping[str, Any]) -> Shape:
    layers = max(0, _number(keys, "block_count") - _number(keys, "nextn_predict_layers"))
    queries = max(_each(keys, "attention.head_count", layers), default=0)
    context = _number(keys, "context_length")
    if keys.get("attention.causal") is False:
        return Shape(layers=0, kv_heads=0, head=0, context=context, queries=queries)
    if rank := _number(keys, "attention.kv_lora_rank"):
        head = rank + _number(keys, "rope.dimension_count")
        return Shape(layers, 1, head, context=context, queries=queries, is_latent=True)
    grouped = "attention.head_count_kv" if "attention.head_count_kv" in keys else "attention.head_count"
    heads = _each(keys, grouped, layers)[: layers - _number(keys, "attention.shared_kv_layers")]
    if interval := _number(keys, "full_attention_interval"):
        heads = [number if (at + 1) % interval == 0 else 0 for at, number in enumerate(heads)]
    most = max(heads, default=0)
    plain = _number(keys, "embedding_length") // queries if queries else 0
    width = (_width(keys, "", plain)) or plain
    windowed, window = _windows(architecture, keys, len(heads))
    cached = [at for at in range(len(heads)) if heads[at]]
    full = [at for at in cached if at not in windowed]
    full_heads = max((heads[at] for at in full), default=most)
    own_heads = max((heads[at] for at in windowed if at in cached), default=0)
    counted = full_heads * len(full) + own_heads * (len(cached) - len(full))
    share = sum(heads) / counted if counted else 1.0
    is_sure = window >= 0 and not _has_unknown_states(keys, heads)
    return Shape(
        layers=len(cached),
        kv_heads=full_heads,
        head=width,
        context=context,
        queries=queries,
        windowed=len(cached) - len(full),
        window=max(window, 0),
        windowed_heads=own_heads,
        windowed_width=_width(keys, "_swa", width) if windowed else 0,
        state=heads.count(0) * _state(keys),
        ends=(share, share) if is_sure else (0, share),
    )


def _width(keys: Mapping[str, Any], kind: str, plain: int) -> int:
    """Return the mean width of a head for keys and values."""
    names = (f"attention.key_length{kind}", f"attention.value_length{kind}")
    widths = [_number(keys, name) or plain for name in names]
    return sum(widths) // 2


def _windows(architecture: str, keys: Mapping[str, Any], layers: int) -> tuple[set[int], int]:
    """Return the layers with a window and its tokens; -1 tokens where it is not known which layers have it."""
    window, pattern = _number(keys, "attention.sliding_window"), keys.get("attention.sliding_window_pattern")
    window = window or _number(keys, "attention.chunk_size")
    if not window:
        return set(), 0
    if isinstance(pattern, list) and pattern:
        return {at for at in range(layers) if at < len(pattern) and pattern[at]}, window
    period = pattern if type(pattern) is int else _PERIODS.get(architecture, 0)
    if not period:
        return set(), -1
    return {at for at in range(layers) if (at + 1) % period}, window


def _state(keys: Mapping[str, Any]) -> int:
    """Return the bytes of a request in a layer of Mamba or linear attention, in 32 bits."""
    inner, size = _number(keys, "ssm.inner_size"), _number(keys, "ssm.state_size")
    inputs = inner + 2 * _number(keys, "ssm.group_count") * size
    return 4 * (inner * size + inputs * max(0, _number(keys, "ssm.conv_kernel") - 1))


def _has_unknown_states(keys: Mapping[str, Any], heads: list[int]) -> bool:
    """Report whether layers may lack a cache without the header telling which."""
    has_states = any(name.startswith(("ssm.", "wkv.")) for name in keys)
    return has_states and all(heads)
