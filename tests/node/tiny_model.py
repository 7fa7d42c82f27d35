"""Writes a llama of random weights as a GGUF file: `python tiny_model.py FILE`. Runs where `gguf` is installed.

Two layers, 64 wide, and a vocabulary of bytes: 400 KiB that llama.cpp serves like any other model.
"""

from __future__ import annotations

import sys

import gguf  # type: ignore[import-not-found]  # in the environment of requirements/node.txt
import numpy as np  # type: ignore[import-not-found]  # as above

_WIDTH, _FEED_FORWARD, _LAYERS, _HEADS, _CONTEXT = 64, 128, 2, 4, 4096
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6


def main(path: str) -> None:
    """Write the file."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_FEED_FORWARD)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_file_type(0)
    size = _add_vocabulary(writer)
    _add_tensors(writer, size)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_vocabulary(writer: gguf.GGUFWriter) -> int:
    """Every byte, the space and the lower-case letters; how many that are."""
    letters = ["\u2581", *map(chr, range(ord("a"), ord("z") + 1))]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *letters]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token.encode() for token in tokens])
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, *[_NORMAL] * len(letters)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_vocab_size(len(tokens))
    return len(tokens)


def _add_tensors(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    random = np.random.default_rng(0)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(f"{name}.weight", (random.standard_normal(shape) * 0.05).astype(np.float32))

    def add_norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(_WIDTH, np.float32))

    add("token_embd", vocabulary, _WIDTH)
    add_norm("output_norm")
    add("output", vocabulary, _WIDTH)
    for layer in (f"blk.{number}" for number in range(_LAYERS)):
        add_norm(f"{layer}.attn_norm")
        add_norm(f"{layer}.ffn_norm")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"{layer}.{name}", _WIDTH, _WIDTH)
        add(f"{layer}.ffn_gate", _FEED_FORWARD, _WIDTH)
        add(f"{layer}.ffn_up", _FEED_FORWARD, _WIDTH)
        add(f"{layer}.ffn_down", _WIDTH, _FEED_FORWARD)


if __name__ == "__main__":
    main(sys.argv[1])
