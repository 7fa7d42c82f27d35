"""Small parts of pods that the families share.

GPU requests, the timing of startup probes (LK-3.8, LK-T-51), the policy for termination messages, and the service
account.
"""

from collections.abc import Iterable

import msgspec

from app.kube.base import Json
from app.kube.merge import find
from app.kube.objects import ObservedObject

TERMINATION_MESSAGE_POLICY = "FallbackToLogsOnError"
"""The end of a failed container's log becomes its termination message, which ``Ready`` quotes."""
STARTUP_PERIOD = 2
"""Seconds between startup probes."""
LOAD_ATTEMPTS = 900
"""Maximum number of startup probes: half an hour for loading a model."""


class GPURequest(msgspec.Struct, frozen=True):
    count: int
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}: {self.count}"


def insufficient_resource(message: str, resources: Iterable[str]) -> str:
    """Return the first resource that the scheduler reports as insufficient, or an empty string."""
    return next((resource for resource in resources if f"Insufficient {resource}" in message), "")


def read_only_mount(volume: str, directory: str, path: str = "") -> Json:
    """Build a mount, of ``path`` in the volume or of all. Metacontroller merges mounts by ``mountPath``: each once."""
    mount = {"name": volume, "mountPath": directory, "readOnly": True}
    return {**mount, "subPath": path} if path else mount


def without_service_links(pod: Json) -> Json:
    """Return the spec of an engine's pod without variables for Services, unless the user wrote the field.

    A Service called ``vllm`` would set vLLM's options, and one called ``prometheus`` or ``master`` those of Text
    Generation Inference, which then ends.
    """
    return {"enableServiceLinks": False, **pod} if pod.get("enableServiceLinks") is None else pod


def account_in_place(observed: ObservedObject | None, running: str) -> str:
    """Return the ``serviceAccountName`` to send when a spec has none; empty to leave it out.

    A name that was sent once cannot be removed: the API server restores it from the deprecated field
    ``serviceAccount``, and pods keep an account that may be deleted. So ``default`` is sent from then on. ``running``
    is the observed name; a name that another operator set is kept.
    """
    if observed is None or not running:
        return ""
    return "default" if find(observed.record, ("spec", "template", "spec", "serviceAccountName")) else ""
