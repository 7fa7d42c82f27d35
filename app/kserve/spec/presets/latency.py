"""The preset of the latency predictor: two servers beside the endpoint picker. Source: KS-2.7.6.

One learns from the times of requests, the other predicts them for the picker.
"""

from __future__ import annotations

from app import images
from app.kserve.names import MAIN
from app.kserve.spec.presets.parts import MESSAGE_PATH
from app.kube.base import Json
from app.workload.parts import TERMINATION_MESSAGE_POLICY

_TRAINING_PORT, _PREDICTION_PORT = 8000, 8001
_TRAINING_URL = f"http://localhost:{_TRAINING_PORT}"


def latency_predictor() -> Json:
    training = _server("training-server", images.LATENCY_TRAINING, "training-port", _TRAINING_PORT)
    prediction = _server("prediction-server", images.LATENCY_PREDICTION, "predict-port", _PREDICTION_PORT)
    picker = {
        "PREDICTION_SERVER_URL": f"http://localhost:{_PREDICTION_PORT}",
        "TRAINING_SERVER_URL": _TRAINING_URL,
        "LATENCY_MAX_SAMPLE_SIZE": "10000",
        "LATENCY_MAX_CONCURRENT_DISPATCHES": "36",
        "LATENCY_COALESCE_WINDOW_MS": "1",
    }
    containers = [
        {"name": MAIN, "env": _env(picker)},
        {
            **training,
            "env": _env(
                {
                    "LATENCY_RETRAINING_INTERVAL_SEC": "10",
                    "LATENCY_MIN_SAMPLES_FOR_RETRAIN": "100",
                    **_paths("LATENCY", "/models"),
                    "LATENCY_MODEL_TYPE": "xgboost",
                    "LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET": "500",
                    "LATENCY_OBJECTIVE_TYPE": "mean",
                }
            ),
            "resources": _resources(("2", "4Gi"), ("4", "8Gi")),
            "volumeMounts": _mounts("training-server", "/models"),
            "startupProbe": _probe("/healthz", _TRAINING_PORT, failureThreshold=30, periodSeconds=10),
            "livenessProbe": _probe("/healthz", _TRAINING_PORT, initialDelaySeconds=30, periodSeconds=20),
            "readinessProbe": _probe("/readyz", _TRAINING_PORT, initialDelaySeconds=45, periodSeconds=10),
        },
        {
            **prediction,
            "env": _env(
                {
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
            ),
            "resources": _resources(("8", "4Gi"), ("28", "8Gi")),
            "volumeMounts": _mounts("prediction-server", "/server_models"),
            "startupProbe": _probe("/readyz", _PREDICTION_PORT, failureThreshold=60, periodSeconds=10),
            "livenessProbe": _probe(
                "/healthz",
                _PREDICTION_PORT,
                initialDelaySeconds=15,
                periodSeconds=15,
                timeoutSeconds=5,
                failureThreshold=5,
            ),
            "readinessProbe": _probe(
                "/readyz",
                _PREDICTION_PORT,
                initialDelaySeconds=10,
                periodSeconds=10,
                timeoutSeconds=5,
                failureThreshold=3,
            ),
        },
    ]
    volumes = [
        {"name": "training-server-storage", "emptyDir": {"sizeLimit": "20Gi"}},
        {"name": "prediction-server-storage", "emptyDir": {"sizeLimit": "10Gi"}},
        {"name": "training-server-tmp", "emptyDir": {}},
        {"name": "prediction-server-tmp", "emptyDir": {}},
    ]
    pod = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 60}
    template = {**pod, "containers": containers, "volumes": volumes}
    return {"router": {"scheduler": {"template": template}}}


def _server(name: str, image: str, port_name: str, port: int) -> Json:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": port_name, "containerPort": port, "protocol": "TCP"}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationMessagePath": MESSAGE_PATH,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
    }


def _env(values: dict[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _paths(prefix: str, directory: str) -> dict[str, str]:
    """Return the variables that say where what is learned is stored."""
    order = ("ttft", "tpot", "ttft_scaler", "tpot_scaler", "ttft_gated", "tpot_gated")
    return {f"{prefix}_{_variable(name)}_PATH": f"{directory}/{name}.joblib" for name in order}


def _variable(name: str) -> str:
    return name.upper() if name.endswith("_scaler") else f"{name.upper()}_MODEL"


def _resources(requests: tuple[str, str], limits: tuple[str, str]) -> Json:
    pairs = {"requests": requests, "limits": limits}
    return {key: {"cpu": cpu, "memory": memory} for key, (cpu, memory) in pairs.items()}


def _mounts(server: str, directory: str) -> list[Json]:
    return [
        {"name": f"{server}-storage", "mountPath": directory},
        {"name": f"{server}-tmp", "mountPath": "/tmp"},  # noqa: S108 - in the pod
    ]


def _probe(path: str, port: int, **numbers: int) -> Json:
    return {"httpGet": {"path": path, "port": port}, **numbers}
