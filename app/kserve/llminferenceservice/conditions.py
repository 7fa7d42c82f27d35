"""Condition types and reasons of a service, each with the situation it means. Source: KS-6, reasons KS-6.8."""

from __future__ import annotations

READY = "Ready"
"""The whole service: workloads and router."""
WORKLOADS_READY = "WorkloadsReady"
ROUTER_READY = "RouterReady"

PRESETS_COMBINED = "PresetsCombined"
"""The effective spec could be computed."""
MAIN_WORKLOAD_READY = "MainWorkloadReady"
WORKER_WORKLOAD_READY = "WorkerWorkloadReady"
PREFILL_WORKLOAD_READY = "PrefillWorkloadReady"
PREFILL_WORKER_WORKLOAD_READY = "PrefillWorkerWorkloadReady"
GATEWAYS_READY = "GatewaysReady"
HTTP_ROUTES_READY = "HTTPRoutesReady"
INFERENCE_POOL_READY = "InferencePoolReady"
SCHEDULER_WORKLOAD_READY = "SchedulerWorkloadReady"

SCALING_READY = "ScalingReady"
PREFILL_SCALING_READY = "PrefillScalingReady"

CRITICALITY_APPLIED = "CriticalityApplied"
"""Ours: whether requests get the priority that ``criticality`` asks for. Nothing depends on it (KS-4.9)."""

CHILDREN_CREATED = "ChildrenCreated"
"""Ours: false while a child is not there, or not as it was asked for, absent otherwise. Its time tells how long."""

WORKLOAD_CONDITIONS = (
    MAIN_WORKLOAD_READY,
    WORKER_WORKLOAD_READY,
    PREFILL_WORKLOAD_READY,
    PREFILL_WORKER_WORKLOAD_READY,
)
"""In the order in which the first false one decides ``WorkloadsReady`` (KS-6.3)."""
SCALING_CONDITIONS = (SCALING_READY, PREFILL_SCALING_READY)
"""After those, where a workload has ``scaling``; a service that is stopped has none of them (KS-5.5)."""
ROUTER_CONDITIONS = (GATEWAYS_READY, HTTP_ROUTES_READY, INFERENCE_POOL_READY, SCHEDULER_WORKLOAD_READY)
"""In the order in which the first false one decides ``RouterReady``."""
TOP_LEVEL = (READY, WORKLOADS_READY, ROUTER_READY)
"""Without severity; every other condition has severity ``Info``."""

INFO = "Info"

# Reasons.

INVALID_SPEC = "InvalidSpec"
"""The spec breaks a rule; nothing was changed."""
OPERATOR_CONFIG_INVALID = "OperatorConfigInvalid"
"""A document of the ConfigMap inferenceservice-config cannot be read; nothing was changed."""
COMBINE_BASE_ERROR = "CombineBaseError"
"""A preset or baseRef is missing, does not render, or makes an invalid spec; nothing was changed."""
RECONCILE_MULTI_NODE_ERROR = "ReconcileMultiNodeWorkloadError"
RECONCILE_SINGLE_NODE_ERROR = "ReconcileSingleNodeWorkloadError"
RECONCILE_SCALING_ERROR = "ReconcileScalingError"
"""The operator's settings lack what a ScaledObject needs."""
HPA_PROGRESSING = "HPAProgressing"
SCALED_OBJECT_PROGRESSING = "ScaledObjectProgressing"
"""The autoscaler has not said anything yet."""
NO_SCHEDULER = "NoScheduler"
"""No endpoint picker sees the requests."""
UNKNOWN_CRITICALITY = "UnknownCriticality"
NOT_ROUTED = "NotRouted"
"""The managed route does not give all objectives to requests."""
SCHEDULER_RECONCILE_ERROR = "SchedulerReconcileError"
HTTP_ROUTE_RECONCILE_ERROR = "HTTPRouteReconcileError"
"""The route is written, but its URLs cannot be found out."""
REFS_INVALID = "RefsInvalid"
"""A Gateway or HTTPRoute that the service refers to does not exist."""
GATEWAYS_NOT_READY = "GatewaysNotReady"
GATEWAY_FETCH_ERROR = "GatewayFetchError"
HTTP_ROUTES_NOT_READY = "HTTPRoutesNotReady"
WAITING_FOR_GATEWAY = "WaitingForGateway"
"""No gateway has looked at the pool yet."""
INFERENCE_POOL_NOT_READY = "InferencePoolNotReady"
INFERENCE_POOL_FETCH_ERROR = "InferencePoolFetchError"
"""The pool does not exist, or its kind is not installed."""
STOPPED = "Stopped"
PROGRESSING = "Progressing"
"""The workload has not said anything yet."""
PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
NAME_CONFLICT = "NameConflict"
"""A child stays unobserved: its name is taken by an object of another owner."""
KIND_NOT_INSTALLED = "KindNotInstalled"
"""A kind that the spec needs is not declared to Metacontroller."""
