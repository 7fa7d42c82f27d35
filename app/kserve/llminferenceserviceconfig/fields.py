"""What becomes of every field of a config: what becomes of it in the services that use the config."""

from app.kserve.llminferenceservice.fields import FIELDS as SERVICE_FIELDS
from app.kserve.resources import LLM_INFERENCE_SERVICE_CONFIG
from app.kube.fieldclass import FieldClass
from app.kube.fieldtable import FieldTable, Use, fields, leaves

_POOL = "router.scheduler.pool.spec."
_FORM = FieldClass(Use.PASSED_THROUGH, "to the InferencePool; both API versions' forms are understood")

FIELDS: FieldTable = {
    **{path: _FORM for path in leaves(LLM_INFERENCE_SERVICE_CONFIG) if path.startswith(_POOL)},
    **{path: treatment for path, treatment in SERVICE_FIELDS.items() if path != "baseRefs[].name"},
    **fields(Use.NO_EFFECT, "baseRefs[].name", note="refused: configs do not nest"),
}
