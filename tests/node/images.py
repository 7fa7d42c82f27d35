"""The images that pods of the tests run, made here: no registry of images is asked.

One root file system of Debian's newest packages stands for several images, as they differ in their names and
configurations only: the downloader's curl with BusyBox' tools, llama.cpp's server, the pause container, CoreDNS,
Prometheus and its metrics adapter.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from app import images as default_images
from app.settings import Settings
from tests.node import archive, debian
from tests.node.archive import Image

ROOT = Path(__file__).parents[2]

PAUSE = "registry.k8s.io/pause:3.10"
COREDNS = "registry.k8s.io/coredns/coredns:v1.15.0"
ADAPTER = "registry.k8s.io/prometheus-adapter/prometheus-adapter:v0.12.0"
PROMETHEUS = "node.test/prometheus:1"
LLAMA = default_images.LLAMACPP
METACONTROLLER = "docker.io/metacontrollerio/metacontroller:v4.17.2"
LOADER = f"docker.io/{default_images.MODEL_LOADER}"
INITIALIZER = f"docker.io/{default_images.STORAGE_INITIALIZER}"
ENGINE = "node.test/vllm:1"
"""llama.cpp's server behind the few arguments of vLLM that KServe's presets write."""

_CERTIFICATES = Path("etc/ssl/certs/ca-certificates.crt")
_PATH = "PATH=/usr/local/bin:/usr/bin:/bin"

_TOOLS_SUITE = "sid"  # the only one that has llama.cpp
_TOOLS = ("bash", "busybox-static", "ca-certificates", "curl", "llama.cpp-tools", "prometheus")

_PASSWD = """\
root:x:0:0:root:/root:/bin/sh
curl_user:x:100:101::/home/curl_user:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/false
"""

_VLLM = """\
#!/bin/sh
# vllm serve DIRECTORY [--served-model-name NAME] [--port PORT], and whatever else is left unread
set -eu
shift
model=$(find -L "$1" -name '*.gguf' | head -n 1)
shift
name=model port=8000
while [ "$#" -gt 0 ]; do
  case $1 in
  --served-model-name) name=$2 ;;
  --port) port=$2 ;;
  esac
  shift
done
exec llama-server --model "$model" --alias "$name" --host 0.0.0.0 --port "$port" --ctx-size 512 --threads 1 --metrics
"""

_LOADER = """\
#!/bin/sh
# One file of a repository of the Hub, as llmaz' loader leaves it
set -eu
exec curl -fsSL --output "/workspace/models/$MODEL_FILENAME" \
  "https://huggingface.co/$MODEL_ID/resolve/$REVISION/$MODEL_FILENAME"
"""

_INITIALIZER = """\
#!/bin/sh
# hf://REPOSITORY DIRECTORY: the model of a repository of the Hub
set -eu
exec curl -fsSL --output "$2/model.gguf" "https://huggingface.co/${1#hf://}/resolve/main/model.gguf"
"""

_PYTHON_SUITE = "trixie"  # its Python is the Dockerfile's 3.13
_PYTHON = ("ca-certificates", "coreutils", "dash", "python3.13-venv")

# What the Dockerfile expects of the official image: `python` and a `pip` that may be removed, both in /usr/local.
_BASE = """\
FROM scratch
COPY root/ /
ENV PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8
RUN python3.13 -m venv /usr/local
CMD ["python3"]
"""


def make_tools(path: Path, programs: Sequence[Path], authority: str, workdir: Path) -> None:
    """Write the archive of all images but the product's; ``programs`` are CoreDNS and the metrics adapter.

    ``authority`` is the certificate of an authority that the images trust besides this machine's.
    """
    root, built = workdir / "root", workdir / "built"
    debian.unpack(_TOOLS_SUITE, _TOOLS, root, workdir / "apt")
    _add_applets(root)
    (root / "etc" / "passwd").write_text(_PASSWD)
    _add_certificates(root, authority)
    for name, script in (("vllm", _VLLM), ("loader", _LOADER), ("initializer", _INITIALIZER)):
        _add_program(root / "usr" / "local" / "bin" / name, script)
    (root / "app").mkdir()
    (root / "app" / "llama-server").symlink_to("/usr/bin/llama-server")
    (built / "usr" / "bin").mkdir(parents=True)
    for program in programs:
        shutil.copy(program, built / "usr" / "bin")
    environment = {"Env": [_PATH]}
    archive.write(
        path,
        [
            Image(PAUSE, [root], {**environment, "Entrypoint": ["/usr/bin/sleep", "2147483647"]}),
            Image(Settings().llmkube_init_container_image, [root], {**environment, "User": "curl_user"}),
            Image(LLAMA, [root], {**environment, "Entrypoint": ["/app/llama-server"], "WorkingDir": "/app"}),
            Image(LOADER, [root], {**environment, "Entrypoint": ["/usr/local/bin/loader"]}),
            Image(INITIALIZER, [root], {**environment, "Entrypoint": ["/usr/local/bin/initializer"]}),
            # Like pause, but with arguments that are not sleep's.
            Image(METACONTROLLER, [root], {**environment, "Entrypoint": ["/usr/bin/sh", "-c", "exec sleep infinity"]}),
            Image(ENGINE, [root], {**environment, "User": "1000"}),
            Image(PROMETHEUS, [root], {**environment, "Entrypoint": ["/usr/bin/prometheus"], "User": "65534"}),
            Image(COREDNS, [root, built], {**environment, "Entrypoint": ["/usr/bin/coredns"]}),
            Image(ADAPTER, [root, built], {**environment, "Entrypoint": ["/usr/bin/adapter"], "User": "65534"}),
        ],
    )


class Builder:
    """buildah with a store of its own, which remembers the layers of earlier builds."""

    def __init__(self, store: Path) -> None:
        self._options = ["--root", str(store / "root"), "--runroot", str(store / "run")]

    def has(self, name: str) -> bool:
        """Whether the store has an image."""
        return self._run("inspect", "--type=image", name).returncode == 0

    def make_base(self, name: str, workdir: Path) -> None:
        """An image that the Dockerfile can build on."""
        root = workdir / "root"
        debian.unpack(_PYTHON_SUITE, _PYTHON, root, workdir / "apt")
        use_registries_of_this_machine(root)
        (workdir / "Dockerfile").write_text(_BASE)
        self.build(name, workdir)

    def build(self, name: str, tree: Path) -> None:
        """Build a folder's Dockerfile as it stands."""
        self._checked(
            "bud", "--layers", "--isolation=chroot", "--network=host", "--pull-never", f"--tag={name}", str(tree)
        )

    def tag(self, name: str, other: str) -> None:
        """Give an image another name."""
        self._checked("tag", name, other)

    def save(self, name: str, path: Path, reference: str) -> None:
        """Write an image as an archive, under a reference that the container runtime understands."""
        path.unlink(missing_ok=True)
        self._checked("push", name, f"docker-archive:{path}:{reference}")

    def _checked(self, *arguments: str) -> None:
        done = self._run(*arguments)
        if done.returncode:
            raise RuntimeError(f"buildah {' '.join(arguments)}: code {done.returncode}\n{done.stderr}{done.stdout}")

    def _run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["buildah", *self._options, command, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def base_name(tree: Path) -> str:
    """The image that the stages of a tree's Dockerfile are FROM."""
    (line,) = (line for line in (tree / "Dockerfile").read_text().splitlines() if line.startswith("ARG PYTHON_IMAGE="))
    return line.partition("=")[2]


def _add_applets(root: Path) -> None:
    """BusyBox' commands, as the downloader's image has them; where a package brought a command, that one stays."""
    busybox = root / "usr" / "bin" / "busybox"
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for applet in listed:
        link = root / "usr" / "bin" / applet
        if not link.is_symlink() and not link.exists():
            link.symlink_to("busybox")


def _add_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _add_certificates(root: Path, authority: str = "") -> None:
    """Trust whom this machine trusts: the package's script that would collect certificates does not run."""
    source = Path("/", _CERTIFICATES)
    target = root / _CERTIFICATES
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text((source.read_text() if source.is_file() else "") + authority)


def use_registries_of_this_machine(root: Path) -> None:
    """Let a root file system's pip get packages as this machine's does."""
    _add_certificates(root)
    (root / "etc" / "pip.conf").write_text(_pip_configuration())


def _pip_configuration() -> str:
    """Where this machine's pip gets packages, so that the one in the image gets them there too."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    wanted = ("cert", "extra-index-url", "index-url", "proxy", "trusted-host")
    options = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        if (option := name.rpartition(".")[2]) in wanted:
            options[option] = value.strip("'")
    if "cert" in options:
        options["cert"] = f"/{_CERTIFICATES}"
    return "\n".join(["[global]", *(f"{option} = {value}" for option, value in options.items()), ""])
