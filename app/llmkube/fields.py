"""What becomes of the fields of the family's kinds: the source of its page in the documentation."""

from app.llmkube.inferenceservice.fields import FIELDS as INFERENCE_SERVICE_FIELDS
from app.llmkube.model.fields import FIELDS as MODEL_FIELDS
from app.llmkube.resources import INFERENCE_SERVICE, MODEL

FIELD_TABLES = ((MODEL, MODEL_FIELDS), (INFERENCE_SERVICE, INFERENCE_SERVICE_FIELDS))
