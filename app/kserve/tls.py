"""Warnings about servers with TLS, for which no certificate is made. Source: KS-3.10."""

from collections.abc import Iterator

from app.kserve.arguments import words
from app.kserve.constants import MAIN
from app.kserve.spec.presets.parts import CERTIFICATES_PATH
from app.kube.base import Json
from app.kube.field import Advice, Path, advice
from app.workload.podadvice import PROBES, scheme_warnings


def tls_advice(pod: Json | None, path: Path, secret: str) -> Iterator[Advice]:
    """Warn of certificates that may be missing in ``secret``, and of HTTPS probes of a server without TLS."""
    for name in ("initContainers", "containers"):
        for where, container in path.child(name).each((pod or {}).get(name) or ()):
            yield from _certificates(container or {}, where, secret)
            yield from _probes(container or {}, where)


def _certificates(container: Json, path: Path, secret: str) -> Iterator[Advice]:
    mounted = any((mount or {}).get("mountPath") == CERTIFICATES_PATH for mount in container.get("volumeMounts") or ())
    if not mounted and any(CERTIFICATES_PATH in word for word in words(container)):
        message = f"reads {CERTIFICATES_PATH}, and no certificate is made here; put one into Secret {secret}"
        yield advice(path, f"{message} (cert-manager can), or remove the options")


def _probes(container: Json, path: Path) -> Iterator[Advice]:
    """Warn of HTTPS probes where the presets start the server, and nothing makes it speak TLS."""
    if container.get("name") == MAIN and not container.get("command"):
        for name in PROBES:
            yield from scheme_warnings(container.get(name) or {}, path.child(name), words(container))
