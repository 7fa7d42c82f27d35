"""Speculative decoding of llama.cpp: its draft model and its arguments. Source: LK-3.5.1."""

import posixpath

from app.llmkube.inferenceservice.types import InferenceServiceSpec, SpeculativeDecoding
from app.llmkube.runtimes.runtime import Serving, flag

_ALIASES = {"draft": "draft-simple", "mtp": "draft-mtp", "disabled": "none"}
_OFF = SpeculativeDecoding(type="none")


def draft(spec: InferenceServiceSpec) -> str:
    """Return the name of the draft Model; empty without one, and if no model is mounted."""
    speculation = spec.speculative_decoding or _OFF
    return speculation.draft_model_ref if speculation.takes_draft and not spec.skip_model_init else ""


def arguments(serving: Serving) -> list[str]:
    """Build the arguments; none if speculative decoding is off, or its draft Model cannot be used."""
    speculation = serving.spec.speculative_decoding or _OFF
    type_ = _ALIASES.get(speculation.type, speculation.type)
    if type_ == "none" or (draft(serving.spec) and not serving.draft):
        return []
    file = posixpath.join(serving.directory, speculation.draft_model or "") if serving.directory else ""
    shortest = None if speculation.p_min is None else str(speculation.p_min).removesuffix(".0")
    return serving.options(
        speculation,
        type=["--spec-type", type_],
        draft_model_ref=flag("-md", serving.draft or (file if speculation.draft_model else "")),
        draft_model=[],
        p_min=flag("--spec-draft-p-min", shortest),
    )
