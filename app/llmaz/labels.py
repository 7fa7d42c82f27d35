"""The labels that upstream's webhook writes on objects, by a DecoratorController (LZ-11.3)."""

from app.hooks.decorator import Decorator, Label
from app.llmaz.claims import main_first
from app.llmaz.kinds import OPEN_MODEL, PLAYGROUND, SERVICE
from app.llmaz.names import MODEL_FAMILY, MODEL_NAME
from app.llmaz.openmodel.types import OpenModelSpec
from app.llmaz.playground.types import PlaygroundSpec
from app.llmaz.service.types import ServiceSpec


def _family(spec: OpenModelSpec) -> str:
    return spec.family_name


def _main_model(spec: PlaygroundSpec | ServiceSpec) -> str:
    return next((model.name for model in main_first(spec.claims.models or []) if model.role == "main"), "")


LABELS = Decorator(
    family="llmaz",
    name="labels",
    labels=(
        Label(OPEN_MODEL, MODEL_FAMILY, _family),
        Label(PLAYGROUND, MODEL_NAME, _main_model),
        Label(SERVICE, MODEL_NAME, _main_model),
    ),
)
