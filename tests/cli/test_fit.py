"""``modelhooks fit``: whether models fit into the memory of their GPUs."""

from __future__ import annotations

from app.kube.base import Json
from tests.cli.files import Command, model, service
from tests.cli.test_explain import LARGE

CARD: Json = {"hardware": {"gpu": {"count": 1}}}


def large(**changes: Json) -> Json:
    return model(spec={**LARGE, **changes})


def test_what_does_not_fit_is_a_failure(command: Command) -> None:
    result = command("fit", command.file("all.yaml", large(), service()))
    assert result.status == 1
    first, *rows = result.out.splitlines()
    assert first.startswith("InferenceService/s in namespace default: does not fit: it needs at least")
    assert [row.split("  ")[1] for row in rows] == ["weights", "key-value cache", "overhead", "needed", "available"]
    (answer,) = command("fit", command.file("all.yaml", large(), service()), "--output", "json").json
    assert (answer["object"], answer["answer"]) == ("InferenceService/s", "does not fit")
    assert answer["rows"][-1] == ["available", "24.0 GiB", "1 x 24.0 GiB, hardware.gpu.memory of the Model"]


def test_the_memory_of_a_gpu_may_be_given(command: Command) -> None:
    file = command.file("all.yaml", large(**CARD), service({"contextSize": 8192}))
    assert command("fit", file).status == 0
    assert "cannot know" in command("fit", file).out
    assert command("fit", file, "--gpu-memory", "24Gi").status == 1
    assert "fits: it needs at most" in command("fit", file, "--gpu-memory", "80Gi").out
    wrong = command("fit", file, "--gpu-memory", "24 GB")
    assert (wrong.status, wrong.err) == (
        2,
        'modelhooks fit: --gpu-memory: "24 GB" is not a valid quantity, such as 24Gi\n',
    )


def test_the_status_of_a_model_counts(command: Command) -> None:
    """What the download reported is more certain than a name."""
    known = {**large(), "status": {"phase": "Ready", "sourceContentLength": 10 * 2**30}}
    result = command("fit", command.file("all.yaml", known, service()))
    assert result.status == 0
    assert "  weights          10.0 GiB" in result.out


def test_related_objects_are_not_judged(command: Command) -> None:
    services, models = command.file("s.yaml", service()), command.file("m.yaml", large())
    assert command("fit", services, "--with", models).status == 1
    assert "Model m is not known" in command("fit", services).out
    nothing = command("fit", models)
    assert (nothing.status, nothing.err) == (
        2,
        "modelhooks fit: no object that names a model, such as an InferenceService\n",
    )


def test_validate_warns_of_it(command: Command) -> None:
    result = command("validate", command.file("all.yaml", large(), service()))
    assert result.status == 0
    assert "warning: spec.modelRef: the model does not fit: it needs at least 36.6 GiB, and has 24.0 GiB" in result.out
