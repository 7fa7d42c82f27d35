"""What becomes of every field of a config: what becomes of it in the services that use the config."""

from app.kserve.llminferenceservice.fields import FIELDS as SERVICE_FIELDS
from app.kube.fieldtable import FieldTable, Use, fields

FIELDS: FieldTable = {
    **{path: treatment for path, treatment in SERVICE_FIELDS.items() if path != "baseRefs[].name"},
    **fields(Use.NO_EFFECT, "baseRefs[].name", note="refused: configs do not nest"),
}
