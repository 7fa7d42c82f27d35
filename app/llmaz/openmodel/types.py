"""The ``OpenModel`` kind: a model that workloads claim by name. Source: LZ-1.1."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from app.kube.base import DateTime, KubeModel
from app.kube.resource import Resource
from app.kube.schema.fieldclass import DEFAULTED, HONOURED, honoured
from app.llmaz.quantities import Quantity
from app.llmaz.status import Status


class ModelHub(KubeModel):
    """A repository on a model hub."""

    name: Annotated[Literal["Huggingface", "ModelScope"], DEFAULTED] = "Huggingface"
    """Hub from which to fetch the weights."""
    model_id: Annotated[str, HONOURED] = Field(default="", alias="modelID")
    """The repository, for example facebook/opt-125m."""
    filename: Annotated[str | None, HONOURED] = None
    """Single file to fetch, for example of GGUF. Hugging Face only; excludes patterns."""
    revision: Annotated[str, DEFAULTED] = "main"
    """Branch, tag or commit to fetch."""
    allow_patterns: Annotated[list[str] | None, HONOURED] = None
    """Glob patterns of the files to fetch. Defaults to all files."""
    ignore_patterns: Annotated[list[str] | None, HONOURED] = None
    """Glob patterns of the files not to fetch."""

    @property
    def patterns(self) -> dict[str, list[str] | None]:
        return {"allowPatterns": self.allow_patterns, "ignorePatterns": self.ignore_patterns}


class ModelSource(KubeModel):
    """Source of the weights: a hub or a URI."""

    model_hub: ModelHub | None = None
    """Repository on a model hub. Takes precedence over uri."""
    uri: Annotated[str | None, honoured("unless modelHub is set")] = None
    """Address of the weights: oss://bucket.endpoint/path, s3://bucket/path, gs://bucket/path or gcs://bucket/path,
    oci://image:tag for an image with the weights in /models, or oci://image:tag#/path for one with them elsewhere,
    ollama://model, or host:///path for a directory that every node has."""


class Flavor(KubeModel):
    """One kind of accelerator the model can run on."""

    other_names: ClassVar[Mapping[str, str]] = {"requests": "limits", "resources": "limits"}

    name: Annotated[str, HONOURED]
    """Name of the flavor, for claims."""
    limits: Annotated[dict[str, Quantity] | None, HONOURED] = None
    """Resources of each pod, such as nvidia.com/gpu; both request and limit of the serving container."""
    node_selector: Annotated[
        dict[str, str] | None,
        honoured(
            "as node affinity of the pods; read by the scheduler alone with MODELHOOKS_LLMAZ_FLAVOR_AFFINITY=false"
        ),
    ] = None
    """Labels of the nodes with this accelerator. Pods run on nodes of one of the claimed flavors and prefer those of
    earlier ones. Defaults to any node."""
    params: Annotated[
        dict[str, str] | None,
        honoured("where the BackendRuntime has a placeholder of that name; INSTANCE-TYPE selects nodes, too"),
    ] = None
    """Values of placeholders such as {{ .TP }} in a BackendRuntime. TP and PP are the tensor-parallel and
    pipeline-parallel sizes; TP defaults to the number of devices in limits. INSTANCE-TYPE is the nodes'
    node.kubernetes.io/instance-type where nodeSelector is absent."""


class InferenceConfig(KubeModel):
    """Requirements for serving a model."""

    flavors: list[Flavor] | None = Field(default=None, max_length=8)
    """Accelerators that can run the model, in order of preference."""


class OpenModelSpec(KubeModel):
    family_name: Annotated[str, honoured("a label on pods; the object itself gets no label")]
    """Family of the model, for example llama3. A label on every pod that serves the model."""
    source: ModelSource
    """Source of the weights."""
    inference_config: InferenceConfig | None = None
    """Requirements for serving the model."""
    owned_by: Annotated[str, honoured("with the component envoy-ai-gateway")] = "llmaz"
    """Owner of the model in the gateway's list of models."""
    created_at: Annotated[DateTime | None, honoured("with the component envoy-ai-gateway")] = None
    """Creation time of the model in the gateway's list of models. Defaults to the OpenModel's."""


OpenModel = Resource[OpenModelSpec, Status]
