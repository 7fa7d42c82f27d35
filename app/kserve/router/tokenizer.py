"""The tokenizer in the endpoint picker's pods, which reads the model's tokenizer files. Source: KS-4.3.

A preset of KServe v0.20 has its container. It is of use to one plugin, and stays only for that one.
"""

from app.kserve.constants import CLAIM_VOLUME, MODEL_PATH, STORAGE_INITIALIZER, TOKENIZER
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.llminferenceservice.types import SchedulerSpec
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.spec.pickerconfig import PRECISE, Picker, may_have_plugin, picker_version
from app.kserve.workload.artifacts import Attachment, attach_files
from app.kserve.workload.plan import download_access, live_image, model_artifact
from app.kube.base import Json
from app.kube.objects import ObservedDeployment, ObservedTemplate

_PATH = f"{MODEL_PATH}/base"
_FILES = (
    '["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "merges.txt", "config.json", '
    '"generation_config.json"]'
)
"""Patterns of the files that are downloaded."""
_ALWAYS_USED_BEFORE = (0, 9)
"""Version of the endpoint picker from which on no other plugin uses the tokenizer."""


def with_tokenizer(
    spec: EffectiveSpec, scheduler: SchedulerSpec, context: ReconcileContext, observed: ObservedDeployment | None
) -> tuple[Json, Picker]:
    """Return the endpoint picker's pod with the files that its tokenizer needs, or without a tokenizer; and the picker.

    A running pod that downloads the files for nothing, as the ones of KServe v0.20 do, goes on.
    """
    pod, version = scheduler.template or {}, picker_version(scheduler.annotations)
    picker = Picker(version, any(container.get("name") == TOKENIZER for container in pod.get("containers") or ()))
    if not picker.has_tokenizer:
        return pod, picker
    running = observed.spec.template if observed is not None else None
    config = scheduler.config.inline if scheduler.config is not None else None
    if picker.is_at_least(*_ALWAYS_USED_BEFORE) and not may_have_plugin(config, PRECISE):
        others = [container for container in pod["containers"] if container.get("name") != TOKENIZER]
        pod, picker = {**pod, "containers": others}, Picker(version)
        if not _has_files(running):
            return pod, picker
    source = model_artifact(spec, context)
    access = download_access(spec, context, str(pod.get("serviceAccountName") or ""), source)
    access = access.with_variables({"STORAGE_ALLOW_PATTERNS": _FILES}, "the tokenizer of the endpoint picker")
    extra = Attachment(access, live_image(running), ca_bundle=context.ca_bundle, reader=TOKENIZER, path=_PATH)
    return attach_files(pod, source, context.operator, extra), picker


def _has_files(running: ObservedTemplate | None) -> bool:
    """Report whether a running pod has the model's files."""
    spec = running.spec if running is not None else None
    parts = [*((spec.init_containers if spec else None) or ()), *((spec.volumes if spec else None) or ())]
    return any(part.name in (STORAGE_INITIALIZER, CLAIM_VOLUME) for part in parts)
