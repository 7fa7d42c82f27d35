"""Build GGUF files without weights: header, metadata and tensor descriptions, valid or corrupt."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}


def text(value: str | bytes) -> bytes:
    """Encode a string; ``bytes`` may be invalid UTF-8."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def value(kind: int, content: Any) -> bytes:
    """Encode a value; for an array, ``content`` is the type of its items and the items."""
    if kind == STRING:
        return text(content)
    if kind == ARRAY:
        of, items = content
        if of == U8:
            return struct.pack("<IQ", of, len(items)) + bytes(items)
        return struct.pack("<IQ", of, len(items)) + b"".join(value(of, item) for item in items)
    return struct.pack("<" + _FORMATS[kind], content)


def gguf(
    pairs: Iterable[tuple[str, int, Any]],
    tensors: Mapping[str, tuple[int, ...]] | None = None,
    *,
    version: int = 3,
    magic: bytes = b"GGUF",
    count: int | None = None,
) -> bytes:
    """Encode a file; ``count`` overrides the number of tensors in its header."""
    written, tensors = list(pairs), tensors or {}
    head = magic + struct.pack("<IQQ", version, len(tensors) if count is None else count, len(written))
    body = b"".join(text(key) + struct.pack("<I", kind) + value(kind, content) for key, kind, content in written)
    infos = b"".join(
        text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", 0, 0)
        for name, shape in tensors.items()
    )
    return head + body + infos


def llama(**changes: tuple[int, Any]) -> list[tuple[str, int, Any]]:
    """Return the metadata of a typical file, with some keys replaced: ``general__file_type=(U32, 7)``."""
    usual: dict[str, tuple[int, Any]] = {
        "general.architecture": (STRING, "llama"),
        "general.name": (STRING, "Tiny Llama"),
        "general.license": (STRING, "apache-2.0"),
        "llama.context_length": (U32, 4096),
        "llama.embedding_length": (U32, 64),
        "llama.block_count": (U32, 2),
        "llama.attention.head_count": (U32, 8),
        "llama.attention.head_count_kv": (U32, 4),
        "llama.rope.freq_base": (F32, 10000.0),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, ["<unk>", "<s>", "ab"])),
        "tokenizer.ggml.scores": (ARRAY, (F32, [0.0, -1.0, 2.0])),
        "general.file_type": (U32, 15),
    }
    usual.update({key.replace("__", "."): content for key, content in changes.items()})
    return [(key, kind, content) for key, (kind, content) in usual.items()]
