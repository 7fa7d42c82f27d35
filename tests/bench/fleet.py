"""Many similar services of each family: the objects, what they share, and the hook responses about one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from app.desk.cluster.offline import World, settled
from app.desk.files.manifests import parse
from app.families import RESOURCES
from app.kube.base import Json
from app.kube.resource import CustomResource

ROOT = Path(__file__).parents[2]
ORIGINAL = "svc-00000"
"""The service that the others are copies of. All names have this length."""


@dataclass(frozen=True)
class Fleet:
    """A family's services: copies of an example's service, and the objects of the same files, which they share.

    The service's file comes last.
    """

    family: str
    kind: str
    files: tuple[str, ...]

    @cached_property
    def _documents(self) -> list[Json]:
        return [d for file in self.files for d in yaml.safe_load_all((ROOT / file).read_text()) if d]

    @property
    def namespace(self) -> str:
        """The name of the first namespace, and the prefix of the others."""
        return f"bench-{self.family}"

    @property
    def resource(self) -> CustomResource:
        """The kind of the services."""
        return next(resource for resource in RESOURCES if resource.kind == self.kind)

    @property
    def shared(self) -> list[Json]:
        """The objects that all services use."""
        return self._documents[:-1]

    def namespaces(self, count: int) -> list[str]:
        """Return the names of ``count`` namespaces."""
        return [self.namespace, *(f"{self.namespace}-{number}" for number in range(1, count))]

    def service(self, name: str = ORIGINAL, namespace: str = "") -> Json:
        """Return the service under that name."""
        original = self._documents[-1]
        metadata = {"name": name, "namespace": namespace or self.namespace}
        return {"apiVersion": original["apiVersion"], "kind": self.kind, "metadata": metadata, "spec": original["spec"]}

    def services(self, count: int, namespaces: int = 1) -> Iterator[Json]:
        """Yield ``count`` services, distributed over ``namespaces`` namespaces in turn."""
        names = self.namespaces(namespaces)
        return (self.service(f"svc-{number:05}", names[number % namespaces]) for number in range(1, count + 1))

    def answers(self) -> dict[str, Json]:
        """The last response about each custom resource that :data:`ORIGINAL` leads to, by the path of the sync hook."""
        manifests = parse(yaml.safe_dump_all([*self.shared, self.service()]), "bench")
        optional = {child.component for resource in RESOURCES for child in resource.children if child.component}
        cluster = settled(manifests, World(self.namespace, tuple(optional)))
        found = {}
        for kind, parent in cluster.parents():
            if parent["metadata"]["name"] == ORIGINAL:
                answer = cluster.last_answer(parent)
                for child in answer["children"]:
                    del child["metadata"]["namespace"]  # Metacontroller uses the parent's
                found[f"{kind.resource.hook_path}/sync"] = {k: answer[k] for k in ("status", "children")}
        return found


FLEETS = {
    fleet.family: fleet
    for fleet in (
        Fleet("llmkube", "InferenceService", ("examples/llmkube/existing-volume.yaml",)),
        Fleet("llmaz", "Playground", ("manifests/llmaz-runtimes/vllm.yaml", "examples/llmaz/quickstart.yaml")),
        Fleet("kserve", "LLMInferenceService", ("examples/kserve/quickstart.yaml",)),
    )
}
