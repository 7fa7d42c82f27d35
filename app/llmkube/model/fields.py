"""What becomes of every field of a Model."""

from app.kube.fieldtable import FieldTable, Use, fields

FIELDS: FieldTable = {
    **fields(Use.HONOURED, "source"),
    **fields(Use.HONOURED, "hardware.gpu.count", note="pods of the cluster"),
    **fields(Use.HONOURED, "hardware.gpu.sharding.layerSplit", note="runtime llamacpp"),
    **fields(Use.HONOURED, "sha256", note="where a Job or a pod of the cluster fetches the file"),
    **fields(Use.DEFAULTED, "refreshPolicy", note="http and https sources without `sha256`, not on metal"),
    **fields(Use.DEFAULTED, "format", note="services report a runtime that cannot load it"),
    **fields(Use.DEFAULTED, "hardware.accelerator"),
    **fields(Use.DEFAULTED, "hardware.gpu.vendor", note="pods of the cluster"),
    **fields(Use.DEFAULTED, "hardware.gpu.sharding.strategy", note="runtime llamacpp"),
    **fields(Use.DEFAULTED, "hardware.gpu.layers", note="runtime llamacpp, and metal"),
    **fields(Use.HONOURED, "resources.cpu", "resources.memory", note="where the service requests none, not on metal"),
    **fields(
        Use.PASSED_THROUGH, "hardware.memoryBudget", "hardware.memoryFraction", note="to the agent, on metal only"
    ),
    **fields(Use.NO_EFFECT, "quantization", "hardware.gpu.enabled", "hardware.gpu.memory"),
}
