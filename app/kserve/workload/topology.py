"""Which workloads a service has. Source: KS-1.3 and KS-3.12.

Three fields decide: ``worker`` makes the main workload a LeaderWorkerSet, ``prefill`` adds a second workload, and
``prefill.worker`` makes that one a LeaderWorkerSet.
"""

from dataclasses import dataclass

from app.kserve import constants
from app.kserve.llminferenceservice.types import WorkloadSpec
from app.kserve.names import Names
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.workload.inherited import Labels, for_children, laid_over


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two workloads, main or prefill, with its names."""

    spec: WorkloadSpec
    name: str
    group_name: str
    component: str
    leader_component: str
    worker_component: str
    role: str
    labels: Labels
    """Labels for pods that the user asks for."""
    annotations: Labels
    former_labels: Labels
    """Labels that earlier releases wrote on pods too; pods that have them keep them, so that nothing restarts."""
    former_annotations: Labels


def topology(spec: EffectiveSpec, names: Names) -> list[Side]:
    """The main workload and, where the spec has one, the prefill workload."""
    sides = [
        Side(
            spec,
            names.main,
            names.multi_node,
            constants.COMPONENT_WORKLOAD,
            constants.COMPONENT_LEADER,
            constants.COMPONENT_WORKER,
            constants.ROLE_BOTH if spec.prefill is None else constants.ROLE_DECODE,
            laid_over(spec.labels),
            for_children(spec.annotations),
            {},
            laid_over(spec.annotations),
        )
    ]
    if spec.prefill is not None:
        sides.append(
            Side(
                spec.prefill,
                names.prefill,
                names.multi_node_prefill,
                constants.COMPONENT_PREFILL,
                constants.COMPONENT_LEADER_PREFILL,
                constants.COMPONENT_WORKER_PREFILL,
                constants.ROLE_PREFILL,
                laid_over(spec.prefill.labels),
                for_children(spec.prefill.annotations),
                laid_over(spec.labels),
                laid_over(spec.annotations, spec.prefill.annotations),
            )
        )
    return sides
