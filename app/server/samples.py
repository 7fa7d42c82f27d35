"""A small valid object of each kind, for the examples of the OpenAPI document. They refer to each other by name."""

from typing import Any

NAME = "smollm"
NAMES = {"Service": "smollm-by-hand"}
"""Of kinds that cannot have the common one: a Playground makes a Service of its own name."""

METADATA: dict[str, Any] = {
    "uid": "0f3c7c1e-2222-4333-8444-555555555555",
    "resourceVersion": "1",
    "generation": 1,
    "creationTimestamp": "2026-01-01T00:00:00Z",
}

SAMPLES: dict[str, dict[str, Any]] = {
    "Model": {
        "spec": {
            "source": "https://models.example.com/smollm2-360m-instruct-q8_0.gguf",
            "format": "gguf",
        },
        "status": {"phase": "Ready"},
    },
    "InferenceService": {"spec": {"modelRef": "smollm", "resources": {"cpu": "500m", "memory": "1Gi"}}},
    "OpenModel": {
        "spec": {
            "familyName": "smollm",
            "source": {"modelHub": {"modelID": "example-org/smollm-360m"}},
        },
    },
    "BackendRuntime": {
        "spec": {
            "image": "registry.example.com/engines/house",
            "version": "3.1",
            "command": ["serve"],
            "recommendedConfigs": [{"name": "default", "args": ["--weights={{ .ModelPath }}", "--port=8080"]}],
        },
    },
    "Playground": {
        "spec": {
            "modelClaim": {"modelName": "smollm"},
            "backendRuntimeConfig": {"backendName": "smollm"},
        },
    },
    "Service": {
        "spec": {
            "modelClaims": {"models": [{"name": "smollm"}]},
            "workloadTemplate": {
                "workerTemplate": {
                    "spec": {
                        "containers": [
                            {
                                "name": "model-runner",
                                "image": "registry.example.com/engines/house:3.1",
                            },
                        ],
                    },
                },
            },
        },
    },
    "LLMInferenceService": {"spec": {"model": {"uri": "hf://example-org/smollm-360m"}, "replicas": 1}},
    "LLMInferenceServiceConfig": {
        "spec": {
            "template": {
                "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
            },
        },
    },
}
