"""What becomes of every field of a Playground."""

from app.kube.fieldtable import FieldTable, Use, fields

_CONFIG = "backendRuntimeConfig"
_HPA = "elasticConfig.scaleTrigger.hpa"

FIELDS: FieldTable = {
    **fields(Use.DEFAULTED, "replicas", note="an autoscaler writes it"),
    **fields(Use.HONOURED, "modelClaim.modelName", "modelClaims.models[].name"),
    **fields(Use.DEFAULTED, "modelClaims.models[].role"),
    **fields(
        Use.HONOURED,
        "modelClaim.inferenceFlavors",
        "modelClaims.inferenceFlavors",
        note="the first decides the resources; all are an annotation on the pods",
    ),
    **fields(Use.DEFAULTED, f"{_CONFIG}.backendName"),
    **fields(Use.HONOURED, f"{_CONFIG}.version", f"{_CONFIG}.sharedMemorySize", note="instead of the preset's"),
    **fields(Use.HONOURED, f"{_CONFIG}.envs", note="added, or instead of those of the same name"),
    **fields(Use.HONOURED, f"{_CONFIG}.configName", note="absent means by whether there is a draft model"),
    **fields(Use.PASSED_THROUGH, f"{_CONFIG}.args", note="after the preset's"),
    **fields(
        Use.HONOURED,
        f"{_CONFIG}.resources.limits",
        f"{_CONFIG}.resources.requests",
        note="each instead of the preset's; a limit of cpu or memory below its request becomes the request",
    ),
    **fields(Use.DEFAULTED, "elasticConfig.minReplicas", note="where there is a scaleTrigger, here or in the preset"),
    **fields(Use.HONOURED, "elasticConfig.maxReplicas", note="where there is a scaleTrigger, here or in the preset"),
    **fields(Use.PASSED_THROUGH, f"{_HPA}.metrics", f"{_HPA}.behavior", note="to the autoscaler"),
}
