"""How a model comes into a pod: by an init container, by the engine, or from the node. Source: LZ-2.4, LZ-2.6."""

from __future__ import annotations

from app.llmaz.embedded import Json
from app.llmaz.lookup import Model
from app.llmaz.names import MODEL_VOLUME, MODELS_DIR, loader
from app.llmaz.source import Hub, ObjectStore

_SECRETS = {"hub": "modelhub-secret", "oss": "oss-access-secret", "s3": "aws-access-secret", "gcs": "aws-access-secret"}
"""Where credentials are looked for, in the workload's own namespace; none of them has to exist."""
_KEYS = {
    "hub": {"HUGGING_FACE_HUB_TOKEN": "HF_TOKEN", "HF_TOKEN": "HF_TOKEN"},
    "oss": {"OSS_ACCESS_KEY_ID": "OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET": "OSS_ACCESS_KEY_SECRET"},
    "s3": {"AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY"},
}
_KEYS["gcs"] = _KEYS["s3"]
"""Variables and the keys of the Secret they come from."""


def credentials(model: Model) -> list[Json]:
    """The variables with which its source is read; none for models of the node and of ollama."""
    found = model.source
    kind = "hub" if isinstance(found, Hub) else found.protocol if isinstance(found, ObjectStore) else ""
    return [_secret(name, _SECRETS[kind], key) for name, key in _KEYS.get(kind, {}).items()]


def _secret(name: str, secret: str, key: str) -> Json:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": True}}}


def init_container(model: Model, position: int, image: str, inherited: list[Json]) -> Json | None:
    """The loader of the model, ``None`` for a model that is not loaded.

    ``inherited`` is the environment of the pod's first container. What tells the loader what to do always wins over it;
    credentials of the user's own always win over ours. No name stands twice (LZ-T04).
    """
    orders = _orders(model)
    if not orders:
        return None
    told = {entry["name"] for entry in orders}
    own = [entry for entry in inherited if entry["name"] not in told]
    has = {entry["name"] for entry in own}
    return {
        "name": loader(position),
        "image": image,
        "env": [*own, *orders, *(entry for entry in credentials(model) if entry["name"] not in has)],
        "volumeMounts": [{"name": MODEL_VOLUME, "mountPath": MODELS_DIR}],
    }


def _orders(model: Model) -> list[Json]:
    """What the loader is told, in upstream's order. Empty texts have no value: the API server stores none."""
    found = model.source
    if isinstance(found, Hub):
        told = {
            "MODEL_SOURCE_TYPE": "modelhub",
            "MODEL_ID": found.model_id,
            "MODEL_HUB_NAME": found.hub,
            "MODEL_FILENAME": found.filename,
            "REVISION": found.revision,
            "MODEL_ALLOW_PATTERNS": _joined(found.allow_patterns),
            "MODEL_IGNORE_PATTERNS": _joined(found.ignore_patterns),
        }
    elif isinstance(found, ObjectStore) and found.protocol == "oss":
        told = {
            "MODEL_SOURCE_TYPE": "objstore",
            "PROVIDER": "OSS",
            "ENDPOINT": found.endpoint,
            "BUCKET": found.bucket,
            "MODEL_PATH": found.key,
        }
    else:
        return []
    return [
        {"name": name, "value": text} if text else {"name": name} for name, text in told.items() if text is not None
    ]


def _joined(patterns: tuple[str, ...] | None) -> str | None:
    return None if patterns is None else ",".join(patterns)
