"""Settings: names, defaults, and values that are easily wrong."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import DEFAULT_PORT, Settings, unknown_variables, variable_name

PAGE = Path(__file__).parents[1] / "docs" / "operations" / "settings.md"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(variable_name(name), raising=False)
    monkeypatch.delenv("LLMKUBE_INTEL_GPU_RESOURCE", raising=False)


def test_the_defaults_are_those_of_the_go_operators() -> None:
    settings = Settings()

    assert settings.llmkube_model_cache_path == "/models"
    assert settings.llmkube_model_cache_size == "100Gi"
    assert settings.llmkube_init_container_image == "docker.io/curlimages/curl:8.18.0"
    assert settings.llmkube_default_fsgroup == 102
    assert settings.llmkube_intel_gpu_resource == "gpu.intel.com/i915"
    assert settings.llmaz_system_namespace == "llmaz-system"
    assert settings.kserve_system_namespace == "kserve"
    assert settings.kserve_config_prefix == "kserve-"
    assert settings.kserve_versioned_config
    assert settings.kserve_wildcard_hostname == "inference"
    assert settings.cluster_domain == "cluster.local"


def test_an_empty_string_is_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELHOOKS_LLMKUBE_MODEL_CACHE_PATH", "")

    assert not Settings().llmkube_model_cache_path


@pytest.mark.parametrize(
    ("text", "hosts"),
    [("a.example, b.example", ("a.example", "b.example")), ("a.example,", ("a.example",)), ("", ())],
)
def test_an_allow_list_is_separated_by_commas_and_an_empty_one_allows_nothing(
    monkeypatch: pytest.MonkeyPatch, text: str, hosts: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MODELHOOKS_LLMKUBE_ALLOWED_SOURCE_HOSTS", text)

    assert Settings().llmkube_allowed_source_hosts == hosts
    assert Settings().llmkube_allowed_host_paths == ()


def test_the_intel_resource_is_also_read_under_the_go_operators_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMKUBE_INTEL_GPU_RESOURCE", " gpu.intel.com/xe ")
    assert Settings().llmkube_intel_gpu_resource == "gpu.intel.com/xe"

    monkeypatch.setenv("MODELHOOKS_LLMKUBE_INTEL_GPU_RESOURCE", "ours")
    assert Settings().llmkube_intel_gpu_resource == "ours"


def test_a_service_link_is_not_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet sets MODELHOOKS_PORT in every pod of a namespace that has a Service called modelhooks."""
    monkeypatch.setenv("MODELHOOKS_PORT", "tcp://10.0.0.1:443")
    monkeypatch.setenv("MODELHOOKS_PORT_443_TCP", "tcp://10.0.0.1:443")
    monkeypatch.setenv("MODELHOOKS_SERVICE_HOST", "10.0.0.1")

    assert Settings().port == DEFAULT_PORT
    assert unknown_variables() == []


def test_a_misspelt_setting_is_reported_with_what_was_meant() -> None:
    environment = {"MODELHOOKS_WATCH_POD": "false", "MODELHOOKS_XYZ": "", "MODELHOOKS_WATCH_PODS": "", "PATH": ""}

    assert unknown_variables(environment) == [
        "MODELHOOKS_WATCH_POD is not a setting, did you mean MODELHOOKS_WATCH_PODS?",
        "MODELHOOKS_XYZ is not a setting",
    ]


@pytest.mark.parametrize(("name", "value"), [("PORT", "70000"), ("WATCH_PODS", "perhaps"), ("LOG_FORMAT", "xml")])
def test_a_wrong_value_stops_the_start(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"MODELHOOKS_{name}", value)

    with pytest.raises(ValidationError, match=name.lower()):
        Settings()


def test_settings_do_not_change_while_the_service_runs() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1


def test_the_operations_page_lists_every_setting_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(MODELHOOKS_\w+)` \| (.*?) \|", PAGE.read_text(), re.MULTILINE))

    assert rows == {variable_name(name): _shown(field.default) for name, field in Settings.model_fields.items()}


def _shown(default: object) -> str:
    if default is None:
        return "not set"
    text = str(default).lower() if isinstance(default, bool) else "" if default == () else str(default)
    return f"`{text}`" if text else "empty"


def test_settings_of_other_objects_are_not_template_inputs() -> None:
    """A change of these after an upgrade must not roll out the pod templates that wait."""
    made = Settings(
        llmkube_init_container_image="mine",
        llmkube_watch_endpoint_slices=False,
        llmkube_model_cache_size="1Gi",
        llmaz_gateway="ns/gateway",
    )
    assert made.chosen("llmkube") == {"llmkube_init_container_image": "mine"}
    assert made.chosen("llmaz") == {}
    assert Settings(kserve_presets="v0.17").chosen("kserve") == {}


def test_a_copy_with_another_value_has_another_digest() -> None:
    """``explain`` copies settings to see what each of them changes, and verdicts are cached by their digest."""
    settings = Settings()
    before = settings.digest
    changed = settings.model_copy(update={"watch_pods": not settings.watch_pods})
    assert changed.digest != before == Settings().digest
