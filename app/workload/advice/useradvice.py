"""Rules about the users that the containers of a pod run as."""

from collections.abc import Iterator
from typing import Any

from app.kube.field import Advice, Path, advice
from app.workload.advice.podview import ContainerView, PodView, Written
from app.workload.engines.images import ROOT, EngineImage, engine_image
from app.workload.rules.wholepod import LISTS


def root(pod: PodView) -> Iterator[Advice]:
    """Warn of a user that the API server accepts and the kubelet refuses, by what each container has (LK-V-K24)."""
    places: set[Path] = set()
    for container in _all_containers(pod) if _names_root(pod) else ():
        user, where = _security(container, pod, "runAsUser")
        strict, strict_at = _security(container, pod, "runAsNonRoot")
        if user == ROOT and strict and where is not None and where not in places:
            places.add(where)
            yield advice(where, _contradiction(container, by_default=strict_at is None))


def _contradiction(container: Written, *, by_default: bool) -> str:
    name = container.spec.get("name") or container.base.get("name")
    owner = f"container {name}" if name and (by_default or not container.spec) else "the container"
    if by_default:
        return f"0 contradicts runAsNonRoot, which {owner} has by default: it will not start; set it to false there"
    return f"0 contradicts runAsNonRoot: {owner} will not start"


def _names_root(pod: PodView) -> bool:
    """Report whether the user of the pod, or of a container, is written to be root."""
    return any(part.part("securityContext").get("runAsUser") == ROOT for part in (pod, *pod.containers))


def _all_containers(pod: PodView) -> Iterator[Written]:
    """Yield the containers of the pod, with those that only its base has; the pod itself if none is known."""
    names = {container.spec.get("name") for container in pod.containers}.union(pod.left_out)
    lower = [item for name in LISTS for item in pod.base.get(name) or () if item.get("name") not in names]
    written = (container for container in pod.containers if "$patch" not in container.spec)
    yield from (container for container in written if container.spec.get("name") not in pod.left_out)
    yield from (Written({}, pod.path, base=item) for item in lower)
    if not pod.containers and not lower:
        yield Written({}, pod.path)


def host_processes(pod: PodView) -> Iterator[Advice]:
    """Warn of a setting that the kubelet refuses in a pod without the node's network (LK-V-K25)."""
    has_network = pod.spec.get("hostNetwork") or pod.base.get("hostNetwork")
    for part in (pod, *pod.containers) if pod.is_whole and not has_network else ():
        context, path = part.part("securityContext"), part.at("securityContext")
        if (context.get("windowsOptions") or {}).get("hostProcess"):
            message = "needs the node's network, which the pod does not have"
            yield advice(path.child("windowsOptions", "hostProcess"), message)


def image_user(container: ContainerView, pod: PodView) -> Iterator[Advice]:
    """Warn of an image that the kubelet refuses, or whose server finds no directory of its own."""
    image = engine_image(container.spec.get("image") or container.base.get("image") or "")
    if image is None:
        return
    user, where = _security(container, pod, "runAsUser")
    strict, strict_at = _security(container, pod, "runAsNonRoot")
    if user is None and strict and image.user == ROOT:
        yield advice(strict_at or container.at("image"), f"{image.image} runs as root, {_NOT_ROOT}")
    elif user is None and strict and image.name:
        yield advice(strict_at or container.at("image"), f"{image.image} {_NAMED.format(image=image)}")
    elif user not in (None, ROOT, image.user) and image.user == ROOT and not container.items("envFrom"):
        yield from _user_without_home(container, image, where or container.at("image"), user)


_NOT_ROOT = (
    "which runAsNonRoot forbids, so the kubelet does not start it; set runAsNonRoot: false for the container, or "
    "runAsUser, with HOME and USER in env"
)

_NAMED = (
    "names its user {image.name}, and the kubelet starts no image under runAsNonRoot whose user is not a number; "
    "set runAsUser: {image.user} for the container"
)


def _user_without_home(container: ContainerView, image: EngineImage, path: Path, user: object) -> Iterator[Advice]:
    """Warn of a user of an engine's image that has no home directory and no name."""
    is_other = container.items("command") and container.line.engine is None
    names = {*container.values_of("env", "name"), *container.variables}
    absent = [name for name in ("HOME", "USER") if name not in names]
    if absent and image.needs_home and not is_other:
        listed = " and ".join(absent)
        message = f"{image.image} has no user {user}, so its server ends where it asks for a name or a home"
        directory = ", and mount an emptyDir at HOME" if "HOME" in absent else ""
        yield advice(path, f"{message}; set {listed} in env{directory}")


def _security(container: Written, pod: PodView, name: str) -> tuple[Any, Path | None]:
    """Return a setting of a container, and its place where the user wrote it; the container's wins over the pod's."""
    for part in (container, pod):
        written, base = part.part("securityContext").get(name), (part.base.get("securityContext") or {}).get(name)
        if written is not None:
            return written, part.at("securityContext").child(name)
        if base is not None:
            return base, None
    return None, None
