"""The presets of one edition by their names: its workloads and its router, and those that every edition has.

The latency predictor's are two servers beside the endpoint picker: one learns from the times of requests, the other
predicts them for the picker (KS-2.7.6).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app import images
from app.kserve.constants import MAIN, PUBLIC_PORT
from app.kserve.spec.presets import parts
from app.kube.base import Json

ONLY, DECODE, PREFILL = "config-llm-", "config-llm-decode-", "config-llm-prefill-"
"""Beginnings of the names of presets for the only workload, the decode and the prefill one."""
SINGLE_NODE, DATA_PARALLEL, PIPELINE = "template", "worker-data-parallel", "worker-pipeline-parallel"
"""Ends of those names: the form of the workload."""
SCHEDULER, ROUTE, TRACING = "config-llm-scheduler", "config-llm-router-route", "config-llm-tracing"
LATENCY_PREDICTOR = "config-llm-scheduler-latency-predictor"

_WORKER_ENV: Json = {"name": "VLLM_RANDOMIZE_DP_DUMMY_INPUTS", "value": "1"}
"""Variable of the workers of a data-parallel decode workload."""
_TRACING: Json = {
    "tracing": {
        "exporterEndpoint": "http://otel-collector:4317",
        "sampler": "parentbased_traceidratio",
        "samplerArg": "0.05",
        "exporter": "otlp",
    }
}


@dataclass(frozen=True, slots=True)
class Target:
    """A workload that presets are for: the only one, the decode one or the prefill one."""

    port: int
    path: str
    """Path of its values in the data of templates."""
    routed: bool = False
    """True if its pods have the routing sidecar."""

    @property
    def parallelism(self) -> str:
        return f"{self.path}.Parallelism"


_TARGETS = {
    ONLY: Target(PUBLIC_PORT, ".Spec"),
    DECODE: Target(parts.DECODE_PORT, ".Spec", routed=True),
    PREFILL: Target(PUBLIC_PORT, ".Spec.Prefill"),
}


@dataclass(frozen=True, slots=True)
class Builders:
    """Functions by which an edition builds the parts of workloads; True: for a pod of a group."""

    command: Callable[[Target, str, bool], list[str]]
    """Of a server of that form; True: of the first pod, which takes the requests."""
    server: Callable[[int, list[str], bool], Json]
    probes: Callable[[int, bool], Json]
    sidecar: Callable[[bool], Json]
    pod: Callable[[Json, Json | None, bool], Json]


def edition(builders: Builders, scheduler: Json, route: Json, common: Mapping[str, Json]) -> dict[str, Json]:
    """Return the presets of an edition; ``common`` is in all of its workloads."""
    presets: dict[str, Json] = {}
    for form in (SINGLE_NODE, DATA_PARALLEL, PIPELINE):
        for prefix, target in _TARGETS.items():
            spec = {**common, **_workload(builders, target, form)}
            presets[prefix + form] = {"prefill": spec} if prefix == PREFILL else spec
    return {
        **presets,
        SCHEDULER: {"router": {"scheduler": scheduler}},
        ROUTE: {"router": {"route": {"http": {"spec": route}}}},
        TRACING: _TRACING,
        LATENCY_PREDICTOR: _latency_predictor(),
    }


def _workload(build: Builders, target: Target, form: str) -> Json:
    """Build a server that fits one pod, or a group. Its workers get no requests, so they have no probes."""
    grouped = form != SINGLE_NODE
    server = {
        **build.server(target.port, build.command(target, form, True), grouped),
        **build.probes(target.port, grouped),
    }
    template = build.pod(server, build.sidecar(grouped) if target.routed else None, grouped)
    if not grouped:
        return {"template": template}
    worker = build.server(target.port, build.command(target, form, False), grouped)
    if form == PIPELINE:
        del worker["ports"]
    elif target.routed:
        worker["env"] = [*worker["env"], _WORKER_ENV]
    return {"template": template, "worker": build.pod(worker, None, grouped)}


_TRAINING_PORT, _PREDICTION_PORT = 8000, 8001
_TRAINING_URL = f"http://localhost:{_TRAINING_PORT}"


def _latency_predictor() -> Json:
    template = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 60,
        "containers": [{"name": MAIN, "env": _env(_PICKER)}, _training_server(), _prediction_server()],
        "volumes": [
            {"name": "training-server-storage", "emptyDir": {"sizeLimit": "20Gi"}},
            {"name": "prediction-server-storage", "emptyDir": {"sizeLimit": "10Gi"}},
            {"name": "training-server-tmp", "emptyDir": {}},
            {"name": "prediction-server-tmp", "emptyDir": {}},
        ],
    }
    return {"router": {"scheduler": {"template": template}}}


_PICKER = {
    "PREDICTION_SERVER_URL": f"http://localhost:{_PREDICTION_PORT}",
    "TRAINING_SERVER_URL": _TRAINING_URL,
    "LATENCY_MAX_SAMPLE_SIZE": "10000",
    "LATENCY_MAX_CONCURRENT_DISPATCHES": "36",
    "LATENCY_COALESCE_WINDOW_MS": "1",
}


def _training_server() -> Json:
    variables = {
        "LATENCY_RETRAINING_INTERVAL_SEC": "10",
        "LATENCY_MIN_SAMPLES_FOR_RETRAIN": "100",
        **_paths("LATENCY", "/models"),
        "LATENCY_MODEL_TYPE": "xgboost",
        "LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET": "500",
        "LATENCY_OBJECTIVE_TYPE": "mean",
    }
    port = {"name": "training-port", "containerPort": _TRAINING_PORT, "protocol": "TCP"}
    return {
        **_server("training-server", images.LATENCY_TRAINING, port, variables, "/models"),
        "resources": _resources(("2", "4Gi"), ("4", "8Gi")),
        "startupProbe": parts.http_probe("/healthz", _TRAINING_PORT, failureThreshold=30, periodSeconds=10),
        "livenessProbe": parts.http_probe("/healthz", _TRAINING_PORT, initialDelaySeconds=30, periodSeconds=20),
        "readinessProbe": parts.http_probe("/readyz", _TRAINING_PORT, initialDelaySeconds=45, periodSeconds=10),
    }


def _prediction_server() -> Json:
    variables = {
        "TRAINING_SERVER_URL": _TRAINING_URL,
        "LATENCY_MODEL_TYPE": "xgboost",
        "PREDICT_HOST": "0.0.0.0",  # noqa: S104 - in the pod
        "PREDICT_PORT": str(_PREDICTION_PORT),
        **_paths("LOCAL", "/server_models"),
        "UVICORN_WORKERS": "28",
        "OMP_NUM_THREADS": "1",
        "MODEL_SYNC_INTERVAL_SEC": "30",
        "LATENCY_OBJECTIVE_TYPE": "mean",
    }

    def probe(path: str, every: int, failures: int) -> Json:
        numbers = {"initialDelaySeconds": every, "periodSeconds": every, "timeoutSeconds": 5}
        return parts.http_probe(path, _PREDICTION_PORT, **numbers, failureThreshold=failures)

    port = {"name": "predict-port", "containerPort": _PREDICTION_PORT, "protocol": "TCP"}
    return {
        **_server("prediction-server", images.LATENCY_PREDICTION, port, variables, "/server_models"),
        "resources": _resources(("8", "4Gi"), ("28", "8Gi")),
        "startupProbe": parts.http_probe("/readyz", _PREDICTION_PORT, failureThreshold=60, periodSeconds=10),
        "livenessProbe": probe("/healthz", 15, 5),
        "readinessProbe": probe("/readyz", 10, 3),
    }


def _server(name: str, image: str, port: Json, variables: dict[str, str], directory: str) -> Json:
    """Build a server that stores what is learned in a directory."""
    return parts.container(
        name,
        image,
        ports=[port],
        securityContext=parts.security(read_only=True, non_root=True),
        env=_env(variables),
        volumeMounts=[
            {"name": f"{name}-storage", "mountPath": directory},
            {"name": f"{name}-tmp", "mountPath": "/tmp"},  # noqa: S108 - in the pod
        ],
    )


def _env(values: dict[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _paths(prefix: str, directory: str) -> dict[str, str]:
    """Return the variables that say where what is learned is stored."""
    models = {"TTFT_MODEL": "ttft", "TPOT_MODEL": "tpot"}
    scalers = {"TTFT_SCALER": "ttft_scaler", "TPOT_SCALER": "tpot_scaler"}
    gated = {"TTFT_GATED_MODEL": "ttft_gated", "TPOT_GATED_MODEL": "tpot_gated"}
    files = {**models, **scalers, **gated}
    return {f"{prefix}_{name}_PATH": f"{directory}/{file}.joblib" for name, file in files.items()}


def _resources(requests: tuple[str, str], limits: tuple[str, str]) -> Json:
    pairs = {"requests": requests, "limits": limits}
    return {key: {"cpu": cpu, "memory": memory} for key, (cpu, memory) in pairs.items()}
