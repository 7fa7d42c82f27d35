"""Check whether the model of a service fits into its GPUs, with the answer of ``modelhooks fit``."""

from app.desk import fitting
from app.desk.cluster.kinds import kind_of
from app.hooks.fit import FitAnswer
from app.studio import documents, graph
from app.studio.models import Answer, FitRequest, FitRow, ModelFit

_WORDS: dict[FitAnswer, Answer] = {
    FitAnswer.FITS: "fits",
    FitAnswer.DOES_NOT_FIT: "does not fit",
    FitAnswer.CANNOT_KNOW: "cannot know",
}


def fit(request: FitRequest) -> ModelFit | None:
    """Return the answer for a resource, ``None`` without a model. Raises :class:`Unknown` for an unknown object."""
    world = documents.world(request)
    cluster = documents.holding(documents.objects(request.documents, request.namespace), world)
    document = cluster.objects.get(graph.key_in(request.node))
    kind = kind_of(document) if document is not None else None
    if document is None or kind is None:
        raise documents.Unknown(f"{request.node} is not described by these documents")
    result = fitting.answer(kind, document, cluster, world.settings)
    if result is None:
        return None
    rows = [FitRow(name=name, amount=amount, source=source) for name, amount, source in result.rows]
    return ModelFit(answer=_WORDS[result.answer], why=result.why, rows=rows, enough=list(result.enough))
