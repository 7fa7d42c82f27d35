"""The image of docs/howto/load.md's client, made here: Debian's Python and PyTorch, and the client of PyPI in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.node import debian, images
from tests.node.images import Builder
from tests.repository.test_docs_howto import manifests

TOKENIZER = "/tokenizer"
"""Folder of the image that stands for the tokenizer of the model's repository."""
_SUITE = "trixie"
_PACKAGES = ("ca-certificates", "coreutils", "dash", "python3-torch", "python3.13-venv")
_LIBRARIES = ("blas/libblas.so.3", "lapack/liblapack.so.3")
"""Libraries to which scripts of their packages would link; no script runs here."""
_WRITE_TOKENIZER = """\
import json, pathlib, sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
folder = pathlib.Path(sys.argv[1])
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
made = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
made.decoder = decoders.ByteLevel()
folder.mkdir()
made.save(str(folder / "tokenizer.json"))
(folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
"""
"""Its tokens are bytes, as those of `tiny_model`."""
_DOCKERFILE = """\
FROM scratch
COPY root/ /
ENV PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8
RUN python3.13 -m venv --system-site-packages {venv} \\
 && {venv}/bin/pip install --no-cache-dir guidellm=={version} \\
 && {venv}/bin/python /write_tokenizer.py {tokenizer}
"""


def job() -> dict[str, Any]:
    """Return the page's Job."""
    (text,) = manifests("load.md", "kind: Job")
    return dict(yaml.safe_load(text))


def image() -> str:
    """Return the image that the page's Job runs."""
    return str(container(job())["image"])


def container(load: dict[str, Any]) -> dict[str, Any]:
    """Return the client's container."""
    (client,) = load["spec"]["template"]["spec"]["containers"]
    return dict(client)


def make(builder: Builder, path: Path, scratch: Path) -> None:
    """Write an archive of the image."""
    root = scratch / "root"
    debian.unpack(_SUITE, _PACKAGES, root, scratch / "apt")
    for folder in (root / "usr" / "lib").glob("*-linux-gnu"):
        for library in _LIBRARIES:
            (folder / Path(library).name).symlink_to(library)
    images.use_registries_of_this_machine(root)
    (root / "write_tokenizer.py").write_text(_WRITE_TOKENIZER)
    (program,) = container(job())["command"]
    version = image().rpartition(":v")[2]
    text = _DOCKERFILE.format(venv=Path(program).parents[1], version=version, tokenizer=TOKENIZER)
    (scratch / "Dockerfile").write_text(text)
    builder.build("load-client", scratch)
    builder.save("load-client", path, image())
