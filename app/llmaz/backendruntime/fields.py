"""What becomes of every field of a BackendRuntime."""

from app.kube.fieldtable import FieldTable, Use, fields

_PRESET = "recommendedConfigs[]"
_HPA = f"{_PRESET}.scaleTrigger.hpa"

FIELDS: FieldTable = {
    **fields(Use.HONOURED, "image", "version", note="together the container's image"),
    **fields(Use.PASSED_THROUGH, "command", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"),
    **fields(Use.HONOURED, "envs", note="the last of several entries of one name"),
    **fields(Use.HONOURED, f"{_PRESET}.name", f"{_PRESET}.sharedMemorySize"),
    **fields(Use.HONOURED, f"{_PRESET}.args", note="with placeholders replaced"),
    **fields(
        Use.HONOURED,
        f"{_PRESET}.resources.limits",
        f"{_PRESET}.resources.requests",
        note="each unless the Playground, or the model's flavor, has it",
    ),
    **fields(
        Use.PASSED_THROUGH,
        f"{_HPA}.metrics",
        f"{_HPA}.behavior",
        note="to the autoscaler of an elastic Playground without a trigger, for the presets default and "
        "speculative-decoding",
    ),
}
