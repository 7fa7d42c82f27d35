"""Warnings about servers with TLS, for which no certificate is made. Source: KS-3.10."""

from collections.abc import Iterator

from app.kserve.spec.presets.parts import CERTIFICATES_PATH
from app.kube.base import Json
from app.kube.field import Advice, Path, advice
from app.workload.commandline import words


def tls_advice(pod: Json | None, path: Path, secret: str) -> Iterator[Advice]:
    """Warn of certificates that may be missing in ``secret``."""
    for name in ("initContainers", "containers"):
        for where, container in path.child(name).each((pod or {}).get(name) or ()):
            yield from _certificates(container or {}, where, secret)


def _certificates(container: Json, path: Path, secret: str) -> Iterator[Advice]:
    mounted = any((mount or {}).get("mountPath") == CERTIFICATES_PATH for mount in container.get("volumeMounts") or ())
    if not mounted and any(CERTIFICATES_PATH in word for word in words(container)):
        message = f"reads {CERTIFICATES_PATH}, and no certificate is made here; put one into Secret {secret}"
        yield advice(path, f"{message} (cert-manager can), or remove the options")
