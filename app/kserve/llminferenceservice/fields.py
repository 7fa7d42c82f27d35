"""What becomes of every field of a service."""

from app.kserve.resources import LLM_INFERENCE_SERVICE
from app.kube.fieldtable import FieldTable, Use, fields, leaves

_ROUTE = "router.route.http.spec."
_POOL = "router.scheduler.pool"
_SCHEDULER = "router.scheduler"


def _below(prefix: str, use: Use, note: str = "") -> FieldTable:
    """The same for every field below a place."""
    return fields(use, *(path for path in leaves(LLM_INFERENCE_SERVICE) if path.startswith(prefix)), note=note)


def _workload(base: str, pods: str) -> FieldTable:
    return {
        **fields(Use.HONOURED, f"{base}replicas", note="left as it is in the cluster where it is not set"),
        **_below(f"{base}scaling.", Use.NO_EFFECT, "checked and stored; attach an autoscaler of your own"),
        **fields(
            Use.HONOURED,
            f"{base}parallelism.tensor",
            f"{base}parallelism.expert",
            note="with worker; in configs of your own, wherever they name it",
        ),
        **fields(
            Use.DEFAULTED,
            f"{base}parallelism.data",
            f"{base}parallelism.dataLocal",
            f"{base}parallelism.dataRPCPort",
            note="with worker",
        ),
        **fields(
            Use.HONOURED,
            f"{base}parallelism.pipeline",
            note="with worker, and with a config that knows it: no preset does",
        ),
        **fields(Use.HONOURED, f"{base}labels", f"{base}annotations", note=f"on {pods}"),
        **fields(Use.DEFAULTED, f"{base}template", note="laid over the preset, with the model put in"),
        **fields(
            Use.DEFAULTED,
            f"{base}worker",
            note="laid over the preset, with the model put in; needs LeaderWorkerSet",
        ),
    }


FIELDS: FieldTable = {
    **fields(Use.HONOURED, "model.uri"),
    **fields(Use.DEFAULTED, "model.name", note="a base that names the model wins"),
    **fields(Use.HONOURED, "model.lora.adapters", note="downloaded or mounted at /mnt/lora, and loaded by vLLM"),
    **fields(
        Use.DEFAULTED,
        "model.lora.maxRank",
        "model.lora.maxAdapters",
        "model.lora.maxCpuAdapters",
        note="with adapters; vLLM has the defaults",
    ),
    **fields(Use.DEFAULTED, "storageInitializer.enabled"),
    **_workload("", "model-server pods, prefill pods too"),
    **_workload("prefill.", "prefill pods, over the service's own"),
    **fields(Use.HONOURED, "router.route.http.refs[].name"),
    **_below(_ROUTE, Use.PASSED_THROUGH, "to the HTTPRoute, laid over the preset"),
    **fields(
        Use.DEFAULTED, f"{_ROUTE}parentRefs[].name", f"{_ROUTE}parentRefs[].namespace", note="gateway.refs replace them"
    ),
    **fields(Use.DEFAULTED, "router.gateway.refs[].name", "router.gateway.refs[].namespace"),
    **_below("router.ingress.", Use.NO_EFFECT),
    **fields(Use.HONOURED, f"{_POOL}.ref.name", note="no scheduler is made then"),
    **_below(f"{_POOL}.spec.", Use.PASSED_THROUGH, "to the InferencePool, laid over the preset"),
    **fields(Use.DEFAULTED, f"{_POOL}.spec.selector.matchLabels", note="in addition to the service's own labels"),
    **fields(Use.DEFAULTED, f"{_POOL}.spec.endpointPickerRef.port.number"),
    **fields(
        Use.PASSED_THROUGH,
        f"{_POOL}.spec.endpointPickerRef.name",
        note="the scheduler's own Service keeps its name; another one is yours to make",
    ),
    **fields(Use.DEFAULTED, f"{_SCHEDULER}.template", note="laid over the preset"),
    **fields(
        Use.HONOURED,
        f"{_SCHEDULER}.replicas",
        note="left as it is in the cluster where it is not set; with more than one they elect a leader",
    ),
    **fields(Use.HONOURED, f"{_SCHEDULER}.labels", f"{_SCHEDULER}.annotations", note="on the scheduler's pods"),
    **fields(Use.DEFAULTED, f"{_SCHEDULER}.config.inline", f"{_SCHEDULER}.config.ref.name"),
    **fields(Use.DEFAULTED, f"{_SCHEDULER}.config.ref.key", note="epp when it is empty"),
    **fields(Use.NO_EFFECT, f"{_SCHEDULER}.config.ref.optional"),
    **fields(Use.HONOURED, "baseRefs[].name"),
}
