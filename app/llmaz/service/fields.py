"""What becomes of every field of a Service."""

from app.kube.fieldtable import FieldTable, Use, fields

_WORKLOAD = "workloadTemplate"
_ROLLOUT = "rolloutStrategy"

FIELDS: FieldTable = {
    **fields(Use.HONOURED, "modelClaims.models[].name"),
    **fields(Use.DEFAULTED, "modelClaims.models[].role"),
    **fields(
        Use.HONOURED,
        "modelClaims.inferenceFlavors",
        note="the first decides the resources; all are an annotation on the pods",
    ),
    **fields(Use.DEFAULTED, "replicas", note="an autoscaler writes it"),
    **fields(
        Use.PASSED_THROUGH,
        f"{_WORKLOAD}.workerTemplate",
        f"{_WORKLOAD}.leaderTemplate",
        note="with the model, the flavor's resources, labels and the scheduler put in",
    ),
    **fields(Use.DEFAULTED, f"{_WORKLOAD}.size", note="cannot be changed; above 1 it needs LeaderWorkerSet"),
    **fields(
        Use.DEFAULTED,
        f"{_WORKLOAD}.restartPolicy",
        f"{_WORKLOAD}.subGroupPolicy.subGroupPolicyType",
        note="to a LeaderWorkerSet; a Deployment has no such thing, and admission warns",
    ),
    **fields(
        Use.HONOURED,
        f"{_WORKLOAD}.subGroupPolicy.subGroupSize",
        note="to a LeaderWorkerSet; a Deployment has no such thing, and admission warns",
    ),
    **fields(Use.DEFAULTED, f"{_ROLLOUT}.type"),
    **fields(
        Use.DEFAULTED,
        f"{_ROLLOUT}.rollingUpdateConfiguration.maxUnavailable",
        f"{_ROLLOUT}.rollingUpdateConfiguration.maxSurge",
    ),
}
