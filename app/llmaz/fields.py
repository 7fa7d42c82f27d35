"""What becomes of the fields of the family's kinds: the source of its page in the documentation."""

from app.llmaz.backendruntime.fields import FIELDS as BACKEND_RUNTIME_FIELDS
from app.llmaz.openmodel.fields import FIELDS as OPEN_MODEL_FIELDS
from app.llmaz.playground.fields import FIELDS as PLAYGROUND_FIELDS
from app.llmaz.resources import BACKEND_RUNTIME, OPEN_MODEL, PLAYGROUND, SERVICE
from app.llmaz.service.fields import FIELDS as SERVICE_FIELDS

FIELD_TABLES = (
    (OPEN_MODEL, OPEN_MODEL_FIELDS),
    (BACKEND_RUNTIME, BACKEND_RUNTIME_FIELDS),
    (PLAYGROUND, PLAYGROUND_FIELDS),
    (SERVICE, SERVICE_FIELDS),
)
