"""Read the line of ``docker run`` that starts a server, as the Deployment that does the same in a cluster."""

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedReader
from itertools import takewhile
from pathlib import Path

import yaml

from app.desk.convert.translate import Entry
from app.desk.convert.workloads import DATA
from app.desk.files.manifests import Manifest, ManifestError
from app.kube.base import Json
from app.workload.address import repository_and_tag

_RUN = re.compile(r"^\s*(?:[$#>]\s+)?(?:sudo\s+)?(?:docker|podman|nerdctl)\s+(?:container\s+)?run\s", re.MULTILINE)
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|\S*)\s*(?:;|#.*)?$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_ENDS = ("|", "||", "&&", "&", ";", ">", ">>", "2>&1", "&>")
_UNITS = {"b": "", "k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti"}


def split(files: Iterable[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the files without lines of ``docker run``, and the content of the others with their names."""
    others, texts = [], []
    for file in files:
        if file == "-":
            is_text = _is_run(sys.stdin.buffer.peek(1)) if isinstance(sys.stdin.buffer, BufferedReader) else False
            content = sys.stdin.buffer.read() if is_text else b""
        else:
            content = Path(file).read_bytes() if Path(file).is_file() else b""
        if _is_run(content):
            texts.append((content.decode(errors="replace"), "<stdin>" if file == "-" else file))
        else:
            others.append(file)
    return others, texts


def _is_run(content: bytes) -> bool:
    text = content.decode(errors="replace")
    return _RUN.search(text) is not None and not re.search(r"^kind:", text, re.MULTILINE)


def workloads(text: str, file: str) -> Iterator[tuple[Manifest, list[Entry]]]:
    """Yield a Deployment for each container that a file starts, with the options that a Deployment cannot express."""
    assigned = {name: value.strip("\"'") for name, value in _ASSIGNED.findall(text)}
    for match in _RUN.finditer(text):
        rest = re.sub(r"\\[ \t\r]*\n", " ", text[match.end() :]).partition("\n")[0]
        rest = _VARIABLE.sub(lambda reference: assigned.get(reference[1], reference[0]), rest)
        line = text[: match.end() - 1].count("\n") + 1
        try:
            words = shlex.split(rest, comments=True)
            workload = _Run(list(takewhile(lambda word: word not in _ENDS, words)), file, line).deployment()
        except ValueError as error:  # an open quote, or a size that is none
            raise ManifestError(str(error), file, line) from None
        yield workload


class _Run:
    def __init__(self, words: list[str], file: str, line: int) -> None:
        self.options: list[tuple[str, str]] = []
        while words and words[0].startswith("-"):
            word = words.pop(0)
            if re.fullmatch("-[dit]{2,}", word):
                words[:0] = [f"-{letter}" for letter in word[1:]]
                continue
            if re.fullmatch(r"-[epvuwml][^-].*", word):
                words.insert(0, word[2:].removeprefix("="))
                word = word[:2]
            name, equals, value = word.partition("=")
            name = DATA.docker.short.get(name, name)
            is_switch = name in DATA.docker.switches or equals or not words
            self.options.append((name, value if is_switch else words.pop(0)))
        self.image, self.arguments = (words or [""])[0], words[1:]
        named = [value for name, value in self.options if name == "--name"]
        tail = repository_and_tag(self.image)[0].rpartition("/")[2]
        self.name = re.sub("[^a-z0-9]+", "-", (named or [tail])[0].lower()).strip("-") or "server"
        self.container: Json = {"name": "server", "image": self.image}
        self.pod: Json = {"containers": [self.container]}
        self.labels: dict[str, str] = {"app": self.name}
        self.file, self.mark = file, yaml.Mark(file, 0, line - 1, 0, None, 0)
        self.notes: list[tuple[str, str, str]] = []

    def deployment(self) -> tuple[Manifest, list[Entry]]:
        for name, value in self.options:
            method = _METHODS.get(name)
            if method is not None:
                method(self, value)
            elif name in DATA.docker.fields:
                self._field(*DATA.docker.fields[name], value)
            elif name not in DATA.docker.needless:
                self.notes.append((name, value, "it is not converted; write it in the pod, if a cluster needs it"))
        if self.arguments:
            self.container["args"] = self.arguments
        template = {"metadata": {"labels": self.labels}, "spec": self.pod}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": self.name}}, "template": template}
        document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": self.name}, "spec": spec}
        manifest = Manifest(self.file, document, yaml.ScalarNode("", "", self.mark, self.mark))
        unread = [(f"word {word}", "", "no variable of the text") for word in self.arguments if _VARIABLE.search(word)]
        return manifest, [Entry(manifest, (name,), value, reason=why) for name, value, why in (*self.notes, *unread)]

    def _field(self, path: str, form: str, value: str) -> None:
        """Write a value where the table has it."""
        part, *keys, last = (step.replace("\0", ".") for step in path.split("."))
        node: Json = self.pod if part == "pod" else self.container
        for key in keys:
            node = node.setdefault(key, {})
        forms: dict[str, object] = {"text": value, "true": True, "list": [*node.get(last, ()), value]}
        node[last] = _bytes(value) if form == "bytes" else forms[form]

    # The other options, each by its name.

    def gpus(self, value: str) -> None:
        named = re.search(r"device=([\w,-]+)", value)
        count = str(len(named[1].split(","))) if named else value if value.isdecimal() else self._size()
        self._field("container.resources.limits.nvidia\0com/gpu", "text", count)
        if not value.isdecimal():
            self.notes.append(("--gpus", value, f"{count} of the node's, whichever are free"))

    def _size(self) -> str:
        """Return the number of GPUs that the server divides the model among."""
        words = " ".join(self.arguments).replace("=", " ").split()
        return next((words[at + 1] for at, word in enumerate(words[:-1]) if word in _SIZES), "1")

    def device(self, value: str) -> None:
        maker = "nvidia" if "nvidia" in value else "amd" if value.startswith(("/dev/kfd", "/dev/dri")) else ""
        if maker:
            self._field(f"container.resources.limits.{maker}\0com/gpu", "text", self._size())
        words = f"{self._size()} of the node's GPUs, by its device plugin" if maker else "a device plugin may offer it"
        self.notes.append(("--device", value, words))

    def mount_option(self, value: str) -> None:
        parts = dict(part.partition("=")[::2] for part in value.split(","))
        source = parts.get("source") or parts.get("src", "")
        target = next((parts[name] for name in ("target", "destination", "dst") if name in parts), "")
        self.volume(f"{source}:{target}{':ro' if {'readonly', 'ro'} & parts.keys() else ''}")

    def env(self, value: str) -> None:
        name, equals, text = value.partition("=")
        if equals and not _VARIABLE.search(text):
            self.container.setdefault("env", []).append({"name": name, "value": text})
            return
        secret = {"name": f"{self.name}-env", "key": name}
        self.container.setdefault("env", []).append({"name": name, "valueFrom": {"secretKeyRef": secret}})
        self.notes.append(("--env", value, f"put the shell's value into the Secret {secret['name']}, key {name}"))

    def env_file(self, value: str) -> None:
        if not Path(value).is_file():
            self.notes.append(("--env-file", value, "no such file here"))
            return
        for line in Path(value).read_text(encoding="utf-8").splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                self.env(line.strip())

    def publish(self, value: str) -> None:
        outer, _, inner = value.partition("/")[0].rpartition(":")
        if not inner.isdecimal():
            self.notes.append(("--publish", value, "a pod's ports are single numbers"))
            return
        self.container.setdefault("ports", []).append({"containerPort": int(inner)})
        if outer.rpartition(":")[2] not in ("", inner):
            self.notes.append(
                ("--publish", value, "clients reach it by the family's Service, at the server's own port")
            )

    def volume(self, value: str) -> None:
        source, _, rest = value.partition(":")
        path, _, mode = rest.partition(":")
        word = re.sub("[^a-z0-9]+", "-", source.rstrip("/").rpartition("/")[2].lower()).strip("-") or "data"
        claim = f"{self.name}-{word}" if re.search("[/~$.]", source) else word
        read_only = {"readOnly": True} if "ro" in mode.split(",") else {}
        self._mount(word, {"persistentVolumeClaim": {"claimName": claim}}, path, read_only)
        self.notes.append(("--volume", value, f"make the PersistentVolumeClaim {claim}, and copy the files onto it"))

    def _mount(self, name: str, source: Json, path: str, more: Json) -> None:
        self.pod.setdefault("volumes", []).append({"name": name, **source})
        self.container.setdefault("volumeMounts", []).append({"name": name, "mountPath": path, **more})

    def shm_size(self, value: str) -> None:
        self._mount("dshm", {"emptyDir": {"medium": "Memory", "sizeLimit": _bytes(value)}}, "/dev/shm", {})  # noqa: S108

    def ipc(self, value: str) -> None:
        self.pod.update({"hostIPC": True} if value == "host" else {})

    def network(self, value: str) -> None:
        if value == "host":
            self.pod |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        else:
            self.notes.append(("--network", value, "all pods reach each other"))

    def user(self, value: str) -> None:
        numbers = dict(zip(("runAsUser", "runAsGroup"), value.split(":"), strict=False))
        if all(number.isdecimal() for number in numbers.values()):
            context = self.container.setdefault("securityContext", {})
            context.update({name: int(number) for name, number in numbers.items()})
        else:
            self.notes.append(("--user", value, "pods need the user's number"))

    def label(self, value: str) -> None:
        name, _, text = value.partition("=")
        self.labels[name] = text


_METHODS: Mapping[str, Callable[[_Run, str], None]] = {
    "--gpus": _Run.gpus,
    "--device": _Run.device,
    "--env": _Run.env,
    "--env-file": _Run.env_file,
    "--publish": _Run.publish,
    "--volume": _Run.volume,
    "--mount": _Run.mount_option,
    "--shm-size": _Run.shm_size,
    "--ipc": _Run.ipc,
    "--network": _Run.network,
    "--user": _Run.user,
    "--label": _Run.label,
}
_SIZES = ("--tensor-parallel-size", "-tp", "--tp", "--tp-size", "--num-shard")


_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([bkmgt]?)(?:i?b)?")


def _bytes(text: str) -> str:
    """Return a size of docker's, whose units are powers of 1024, as a quantity. Raises ValueError."""
    size = _SIZE.fullmatch(text.strip().lower())
    if size is None:
        raise ValueError(f"{text!r} is no size: docker's are like 512m and 16g")
    return f"{size[1]}{_UNITS.get(size[2], '')}"
