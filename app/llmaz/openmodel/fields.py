"""What becomes of every field of an OpenModel."""

from app.kube.fieldtable import FieldTable, Use, fields

_HUB = "source.modelHub"

FIELDS: FieldTable = {
    **fields(Use.HONOURED, "familyName", note="a label on pods; the object itself gets no label"),
    **fields(Use.HONOURED, f"{_HUB}.modelID", f"{_HUB}.filename", f"{_HUB}.allowPatterns", f"{_HUB}.ignorePatterns"),
    **fields(Use.DEFAULTED, f"{_HUB}.name", f"{_HUB}.revision"),
    **fields(Use.HONOURED, "source.uri", note="unless modelHub is set"),
    **fields(Use.HONOURED, "inferenceConfig.flavors[].name", "inferenceConfig.flavors[].limits"),
    **fields(
        Use.PASSED_THROUGH,
        "inferenceConfig.flavors[].nodeSelector",
        "inferenceConfig.flavors[].params",
        note="to programs that read OpenModels: the InftyAI scheduler, llmaz's Karpenter",
    ),
    **fields(Use.PASSED_THROUGH, "ownedBy", "createdAt", note="to programs that list models"),
}
