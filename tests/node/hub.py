"""The Hugging Face Hub on the node: its name in the cluster's DNS, HTTPS, and the tiny model under every file name."""

from __future__ import annotations

import dataclasses
import json
import shutil
import ssl
from datetime import UTC, datetime
from pathlib import Path

from app.certs.authority import KeyPair, new_ca, new_leaf
from tests.node.files import FileServer

NAME = "huggingface.co"
FILES = ("smollm2-360m-instruct-q8_0.gguf", "qwen2.5-0.5b-instruct-q4_k_m.gguf", "model.gguf")
"""File names that the pages' examples download; the last one replaces a whole repository (see `images`)."""


def make_authority(path: Path, _scratch: Path) -> None:
    """Write a new CA, which signs the Hub's certificate."""
    path.touch(mode=0o600)
    path.write_text(json.dumps(dataclasses.asdict(new_ca(datetime.now(UTC)))))


def read_authority(path: Path) -> KeyPair:
    """Read the CA that `make_authority` wrote."""
    return KeyPair(**json.loads(path.read_text()))


def serve(address: str, model: Path, authority: KeyPair, folder: Path, *, port: int = 443) -> FileServer:
    """Return the Hub's server at an address, with its files in a new folder; a context manager."""
    folder.mkdir()
    for name in FILES:
        shutil.copy(model, folder / name)
    leaf = new_leaf(authority, [NAME], datetime.now(UTC))
    certificate, key = folder.with_suffix(".crt"), folder.with_suffix(".key")
    certificate.write_text(leaf.certificate)
    key.write_text(leaf.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = FileServer(address, folder, port)
    server.use_tls(context)
    return server
