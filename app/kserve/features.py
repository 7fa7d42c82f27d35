"""Features of KServe v0.20 without effect here, reported by admission and the condition ``FeaturesApplied``."""

from collections.abc import Iterator

from app.kserve.constants import MAIN, TOKENIZER
from app.kserve.lora import is_loaded
from app.kserve.modeluri import parse
from app.kserve.sources import provider
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.spec.pickerconfig import PRECISE, PREDICTED_LATENCY, document_of, plugins
from app.kube.base import Json

TLS_SETTING = "enableLLMInferenceServiceTLS"
NO_TLS = f"{TLS_SETTING} of the operator's settings has no effect: requests inside the cluster are not encrypted"
NO_FILES = "the tokenizer gets no files of the model: they are neither downloaded nor on a claim"

_SIDECARS = {
    PRECISE: "tokenizer",
    "token-producer": "tokenizer",
    PREDICTED_LATENCY: "latency predictor",
}
"""Plugins of the endpoint picker that ask another server, by their type, and what they ask."""


def plugins_without_server(config: object, pod: Json | None) -> Iterator[str]:
    """Yield a problem for each plugin whose server is not a container of the endpoint picker's pod."""
    names = {container.get("name") for container in (pod or {}).get("containers") or ()}
    if names - {MAIN, TOKENIZER}:
        return
    for plugin in plugins(document_of(config)):
        server = _SIDECARS.get(str(plugin.get("type")))
        if server is not None and server not in names:
            yield f"{plugin['type']} needs a {server}, and no container has one; add one to scheduler.template"


def tokenizer_lacks_files(spec: EffectiveSpec) -> bool:
    """Report whether a plugin of the endpoint picker asks a tokenizer that nothing brings the model's files."""
    scheduler = spec.scheduler
    if scheduler is None or scheduler.config is None:
        return False
    containers = (scheduler.template or {}).get("containers") or ()
    has_tokenizer = any(container.get("name") == TOKENIZER for container in containers)
    asks = any(plugin.get("type") == PRECISE for plugin in plugins(document_of(scheduler.config.inline)))
    is_image = spec.model is not None and provider(parse(spec.model.uri)).is_image
    return has_tokenizer and asks and (is_image or not is_loaded(spec))
