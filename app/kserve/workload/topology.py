"""Which workloads a service has. Source: KS-1.3 and KS-3.12.

Three fields decide: ``worker`` makes the main workload a LeaderWorkerSet, ``prefill`` adds a second workload, and
``prefill.worker`` makes that one a LeaderWorkerSet.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.kserve.constants import COMPONENT_WORKLOAD, ROLE_BOTH, ROLE_DECODE, ROLE_PREFILL
from app.kserve.llminferenceservice.types import WorkloadSpec
from app.kserve.names import Names
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.workload.inherited import Labels, for_children, laid_over, still_there


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two workloads, main or prefill, with its names."""

    spec: WorkloadSpec
    name: str
    group_name: str
    role: str
    former_labels: Labels
    """Labels that earlier releases wrote on pods too; pods that have them keep them, so that nothing restarts."""
    former_annotations: Labels

    def labels(self, running: Mapping[str, str] | None) -> Labels:
        """Return the labels for pods that the user asks for, and former ones that ``running`` pods have."""
        return laid_over(self.spec.labels, still_there(self.former_labels, running))

    def annotations(self, running: Mapping[str, str] | None) -> Labels:
        return laid_over(for_children(self.spec.annotations), still_there(self.former_annotations, running))

    def component(self, part: str = "") -> str:
        """Return the component label of pods; of groups, ``part`` is ``-leader`` or ``-worker``."""
        return f"{COMPONENT_WORKLOAD}{part}{'-prefill' if self.role == ROLE_PREFILL else ''}"


def topology(spec: EffectiveSpec, names: Names) -> list[Side]:
    """The main workload and, where the spec has one, the prefill workload."""
    role = ROLE_BOTH if spec.prefill is None else ROLE_DECODE
    main = Side(spec, names.main, names.multi_node, role, {}, spec.annotations or {})
    if spec.prefill is None:
        return [main]
    former = laid_over(spec.annotations, spec.prefill.annotations)
    prefill = Side(spec.prefill, names.prefill, names.multi_node_prefill, ROLE_PREFILL, spec.labels or {}, former)
    return [main, prefill]
