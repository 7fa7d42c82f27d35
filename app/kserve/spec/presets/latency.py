"""The preset of the latency predictor: one server learns the times of requests, another predicts them (KS-2.7.6)."""

from app import images
from app.kserve.constants import MAIN
from app.kserve.spec.presets import parts
from app.kube.base import Json

_TRAINING_PORT, _PREDICTION_PORT = 8000, 8001
_TRAINING_URL = f"http://localhost:{_TRAINING_PORT}"
_PICKER = {
    "PREDICTION_SERVER_URL": f"http://localhost:{_PREDICTION_PORT}",
    "TRAINING_SERVER_URL": _TRAINING_URL,
    "LATENCY_MAX_SAMPLE_SIZE": "10000",
    "LATENCY_MAX_CONCURRENT_DISPATCHES": "36",
    "LATENCY_COALESCE_WINDOW_MS": "1",
}


def latency_predictor() -> Json:
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
