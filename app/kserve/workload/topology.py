"""Which workloads a service has (KS-1.3, KS-3.12), and what they inherit from it and from the observed objects.

Object metadata, pod labels and the selector are three maps (KS-3.3, KS-3.4, KS-9.1).
"""

from collections.abc import Mapping

import msgspec

from app.hooks.kept import kept_replicas
from app.kserve.constants import COMPONENT_WORKLOAD, MODEL_ROUTING, ROLE_BOTH, ROLE_DECODE, ROLE_PREFILL
from app.kserve.llminferenceservice.types import ScalingSpec, WorkloadSpec
from app.kserve.names import Names
from app.kserve.spec.effective import EffectiveSpec
from app.kube.base import Json
from app.kube.objects import ObservedDeployment, ObservedLeaderWorkerSet
from app.workload.parts import account_in_place

Labels = dict[str, str]


class Side(msgspec.Struct, frozen=True):
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
    role = ROLE_BOTH if spec.prefill is None else ROLE_DECODE
    main = Side(spec, names.main, names.multi_node, role, {}, spec.annotations or {})
    if spec.prefill is None:
        return [main]
    former = laid_over(spec.annotations, spec.prefill.annotations)
    prefill = Side(spec.prefill, names.prefill, names.multi_node_prefill, ROLE_PREFILL, spec.labels or {}, former)
    return [main, prefill]


def propagated(values: Mapping[str, str] | None, prefixes: tuple[str, ...]) -> Labels:
    return {key: value for key, value in (values or {}).items() if key.startswith(prefixes)}


def laid_over(*maps: Mapping[str, str] | None) -> Labels:
    """Merge the maps; later ones win."""
    return {key: value for values in maps for key, value in (values or {}).items()}


def for_children(annotations: Mapping[str, str] | None) -> Labels:
    """The annotations of a spec without the one that is about its route."""
    return {key: value for key, value in (annotations or {}).items() if key != MODEL_ROUTING}


def still_there(former: Mapping[str, str], running: Mapping[str, str] | None) -> Labels:
    """Labels that earlier releases wrote on pods and running pods have; without them they would restart."""
    return {key: value for key, value in former.items() if (running or {}).get(key) == value}


def replicas(
    desired: int | None,
    observed: ObservedDeployment | ObservedLeaderWorkerSet | None,
    scaling: ScalingSpec | None = None,
) -> int | None:
    """Return ``spec.replicas`` to send: the user's number, else the observed one; None leaves the field out.

    A number that was sent once and is no longer set must be sent as observed: left out, it would be deleted, and the
    API server would default it to 1 (KS-9.1). With ``scaling`` a new or stopped workload starts with the minimum,
    unless KEDA is to leave it at 0 while nothing asks for it.
    """
    if desired is not None:
        return desired
    if scaling is not None and (observed is None or (observed.spec.replicas == 0 and scaling.idle_replicas != 0)):
        return scaling.min_replicas or 1
    return kept_replicas(observed)


def with_account(pod: Json, observed: ObservedDeployment | None, account: str) -> Json:
    """The pod of a Deployment, naming an account where it names none and the observed one has ours.

    ``account``: the managed one where accounts are not declared. Pods keep it, with the rights that they need.
    """
    running = observed.spec.template.spec.service_account_name if observed is not None else ""
    if pod.get("serviceAccountName") or running in ("", account):
        return pod
    name = account_in_place(observed, running)
    return {**pod, "serviceAccountName": name} if name else pod
