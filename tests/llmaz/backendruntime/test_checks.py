"""Admission of BackendRuntimes (LZ-BR01 to LZ-BR03, LZ-6.4)."""

from __future__ import annotations

import pytest

from app.kube.base import Json
from tests.llmaz.world import BACKEND_RUNTIME, admit, paths, preset, runtime

LOW = {"requests": {"cpu": 4}, "limits": {"cpu": 1}}
DUPLICATE_HEADERS = {
    "httpGet": {"port": 8080, "httpHeaders": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
}

REFUSED: dict[str, tuple[Json, list[str]]] = {
    "LZ-BR01 a limit below its request": (preset(resources=LOW), ["spec.resources"]),
    "LZ-BR02 a preset twice": (runtime(recommendedConfigs=[{"name": "a"}, {"name": "a"}]), ["spec.args.name"]),
    "LZ-BR03 nothing": ({**runtime(), "spec": {}}, ["spec.image", "spec.version"]),
    "LZ-N21 a trigger of nothing": (preset(scaleTrigger={}), ["spec.recommendedConfigs[0].scaleTrigger.hpa"]),
    "LZ-N23 a metric of another type": (
        preset(scaleTrigger={"hpa": {"metrics": [{"type": "Pods", "resource": {"name": "cpu", "target": {}}}]}}),
        [
            "spec.recommendedConfigs[0].scaleTrigger.hpa.metrics[0].resource.target.type",
        ],
    ),
    "a header twice": (
        runtime(readinessProbe=DUPLICATE_HEADERS),
        ["spec.readinessProbe.httpGet.httpHeaders"],
    ),
    "a probe without a handler": (runtime(livenessProbe={"periodSeconds": 5}), ["spec.livenessProbe"]),
    "a hook without a handler": (runtime(lifecycle={"preStop": {}}), ["spec.lifecycle.preStop"]),
    "a hook with two handlers": (
        runtime(lifecycle={"postStart": {"exec": {"command": ["x"]}, "sleep": {"seconds": 1}}}),
        ["spec.lifecycle.postStart.sleep"],
    ),
    "a hook's port": (
        runtime(lifecycle={"preStop": {"httpGet": {"port": "a.b", "scheme": "FTP"}}}),
        ["spec.lifecycle.preStop.httpGet.port", "spec.lifecycle.preStop.httpGet.scheme"],
    ),
    "a hook that sleeps backwards": (
        runtime(lifecycle={"preStop": {"sleep": {"seconds": -1}}}),
        ["spec.lifecycle.preStop.sleep.seconds"],
    ),
    "a hook that sleeps longer than the grace period of a Playground's pods": (
        runtime(lifecycle={"preStop": {"sleep": {"seconds": 131}}}),
        ["spec.lifecycle.preStop.sleep.seconds"],
    ),
    "negative shared memory": (preset(sharedMemorySize="-1Gi"), ["spec.recommendedConfigs[0].sharedMemorySize"]),
    "arguments for no param": (
        preset(paramArgs=[{"param": "", "args": ["x"]}]),
        ["spec.recommendedConfigs[0].paramArgs[0].param"],
    ),
    "a variable without a name": (runtime(envs=[{"value": "x"}]), ["spec.envs[0].name"]),
}


@pytest.mark.parametrize(("item", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_all_mistakes_are_refused_at_once(item: Json, want: list[str]) -> None:
    """All errors of an object are reported at once."""
    assert paths(admit(BACKEND_RUNTIME, item)) == want


def test_upstream_paths_lead_to_the_true_place() -> None:
    """Upstream's path may name a field that does not exist; the message and ``place`` name the actual field."""
    (error,) = admit(BACKEND_RUNTIME, preset(resources=LOW)).errors
    assert "spec.recommendedConfigs[0].resources.limits[cpu]" in error.body
    assert error.place is not None
    assert error.place.segments == ("spec", "recommendedConfigs", 0, "resources", "limits", "cpu")


def test_two_low_limits_are_two_errors() -> None:
    """Both errors have the same path but different messages."""
    low = {"requests": {"cpu": 4, "memory": "2Gi"}, "limits": {"cpu": 1, "memory": "1Gi"}}
    assert len({str(error) for error in admit(BACKEND_RUNTIME, preset(resources=low)).errors}) == 2


WARNED = {
    "LZ-N20 a placeholder that few models fill": (preset(args=["{{ .Foo }}"]), "args[0]: {{ .Foo }} has a value only"),
    "LZ-N20 a misspelt placeholder": (preset(args=["{{ .modelPath }}"]), "did you mean ModelPath?"),
    "LZ-N20 another's param": (
        preset(paramArgs=[{"param": "TP", "args": ["--x", "{{ .TP }}", "{{ .Foo }}"]}]),
        "spec.recommendedConfigs[0].paramArgs[0].args[2]: {{ .Foo }} has a value only",
    ),
    "LZ-N22 no default": (runtime(recommendedConfigs=[{"name": "x"}]), "configName"),
    "LZ-N24 no metrics": (preset(scaleTrigger={"hpa": {}}), "80 percent"),
    "LZ-N30 an accelerator": (preset(resources={"limits": {"nvidia.com/gpu": 1}}), "nvidia.com/gpu"),
    "LZ-N31 another port": (preset(args=["--port", "8000"]), "args[0]: no effect on the probes and the Service"),
    "a placeholder without its dot": (
        preset(args=["run {{ ModelName }}"]),
        "args[0]: this placeholder is not replaced",
    ),
    "a placeholder in the command": (runtime(command=["serve", "{{ .ModelPath }}"]), "spec.command[1]"),
    "a placeholder in a variable": (runtime(envs=[{"name": "A", "value": "{{.ModelName}}"}]), "spec.envs[0].value"),
    "an image with a tag": (runtime(image="localhost:5000/engine:v1"), "spec.image: already has a tag"),
    "no tag": (runtime(version=""), "spec.version: empty"),
    "a probe of another port's name": (runtime(livenessProbe={"httpGet": {"port": "web"}}), "is called http"),
    "a hook's program with its arguments": (
        runtime(lifecycle={"preStop": {"exec": {"command": ["sleep 9"]}}}),
        "spec.lifecycle.preStop.exec.command[0]: no program has this name",
    ),
    "a probe of the node": (
        runtime(livenessProbe={"httpGet": {"port": 8080, "host": "127.0.0.1"}}),
        "spec.livenessProbe.httpGet.host: the kubelet connects from the node",
    ),
    "a version with blanks": (runtime(version="v1 "), "spec.version: must be a tag"),
    "a version without its v": (
        runtime(image="vllm/vllm-openai", version="0.9.2"),
        "spec.version: no image has this tag; did you mean v0.9.2?",
    ),
    "a variable twice": (runtime(envs=[{"name": "A"}, {"name": "A", "value": "x"}]), "the last one wins"),
}


@pytest.mark.parametrize(("item", "part"), WARNED.values(), ids=WARNED.keys())
def test_what_is_accepted_with_a_bad_effect_is_warned_of(item: Json, part: str) -> None:
    """The object is accepted with a warning."""
    verdict = admit(BACKEND_RUNTIME, item)
    assert verdict.errors == []
    assert any(part in warning for warning in verdict.warnings), verdict.warnings


def test_params_of_flavors_are_fine() -> None:
    """Params may be used in their own paramArgs and in variables; TP and PP always have a value."""
    added = {"param": "MAX-LEN", "args": ["--max-model-len={{ .MAX-LEN }}"], "unless": ["--max-len"]}
    item = preset(args=["--tp", "{{ .TP }}"], paramArgs=[added])
    item["spec"]["envs"] = [{"name": "DEVICES", "value": "{{ .TP }} of {{ .INSTANCE-TYPE }}"}]
    assert admit(BACKEND_RUNTIME, item).warnings == []


def test_a_newer_handler_is_fine() -> None:
    """A handler of a newer Kubernetes release is accepted."""
    hook = {"preStop": {"future": {"x": 1}}}
    assert paths(admit(BACKEND_RUNTIME, runtime(lifecycle=hook))) == []


def test_any_name_is_fine() -> None:
    """A BackendRuntime's name may contain dots."""
    assert paths(admit(BACKEND_RUNTIME, runtime("a.b"))) == []


def test_a_registry_with_a_port_is_fine() -> None:
    """A colon before the last slash does not start a tag; braces around other names are not a placeholder."""
    item = runtime(
        image="localhost:5000/engine",
        readinessProbe={"httpGet": {"port": "http"}},
        envs=[{"name": "TEMPLATE", "value": "{{ messages }}"}],
        recommendedConfigs=[{"name": "default", "args": ["--template", "{{ messages }}", "--port", "8080"]}],
    )
    assert admit(BACKEND_RUNTIME, item).warnings == []
