"""What becomes of the fields of the family's kinds: the source of its page in the documentation."""

from app.kserve.llminferenceservice.fields import FIELDS as SERVICE_FIELDS
from app.kserve.llminferenceserviceconfig.fields import FIELDS as CONFIG_FIELDS
from app.kserve.resources import LLM_INFERENCE_SERVICE, LLM_INFERENCE_SERVICE_CONFIG

FIELD_TABLES = ((LLM_INFERENCE_SERVICE, SERVICE_FIELDS), (LLM_INFERENCE_SERVICE_CONFIG, CONFIG_FIELDS))
