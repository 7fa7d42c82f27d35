"""The ``OpenModel`` kind: a model that workloads claim by name. Source: LZ-1.1."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from pydantic import Field

from app.kube.base import DateTime, KubeModel
from app.kube.conditions import Condition
from app.kube.fieldclass import DEFAULTED, HONOURED, honoured
from app.kube.resource import Resource
from app.llmaz.quantities import Quantity
from app.llmaz.status import Status


class ModelHub(KubeModel):
    """A repository on a model hub."""

    name: Annotated[Literal["Huggingface", "ModelScope"], DEFAULTED] = Field(
        default="Huggingface", description="The hub that the weights are fetched from."
    )
    model_id: Annotated[str, HONOURED] = Field(
        default="", alias="modelID", description="The repository, for example facebook/opt-125m."
    )
    filename: Annotated[str | None, HONOURED] = Field(
        default=None, description="The one file to fetch, as for GGUF; Hugging Face only, and without patterns."
    )
    revision: Annotated[str, DEFAULTED] = Field(default="main", description="Branch, tag or commit to fetch.")
    allow_patterns: Annotated[list[str] | None, HONOURED] = Field(
        default=None, description="Only files that match one of these globs are fetched."
    )
    ignore_patterns: Annotated[list[str] | None, HONOURED] = Field(
        default=None, description="Files that match one of these globs are not fetched."
    )


class ModelSource(KubeModel):
    """Where the weights come from: a hub or a URI."""

    model_hub: ModelHub | None = Field(default=None, description="A repository on a model hub. Wins over uri.")
    uri: Annotated[str | None, honoured("unless modelHub is set")] = Field(
        default=None,
        description="The weights elsewhere: oss://bucket.endpoint/path, s3://bucket/path, gs://bucket/path or "
        "gcs://bucket/path, oci://image:tag for an image with the weights in /models, or oci://image:tag#/path for one "
        "with them elsewhere, ollama://model, or host:///path for a directory that every node has.",
    )


class Flavor(KubeModel):
    """One kind of accelerator the model can run on."""

    name: Annotated[str, HONOURED] = Field(description="The name by which claims choose the flavor.")
    limits: Annotated[dict[str, Quantity] | None, HONOURED] = Field(
        default=None,
        description="Resources of each pod, such as nvidia.com/gpu; both request and limit of the serving container.",
    )
    node_selector: Annotated[
        dict[str, str] | None,
        honoured(
            "as node affinity of the pods; read by the scheduler alone with MODELHOOKS_LLMAZ_FLAVOR_AFFINITY=false"
        ),
    ] = Field(
        default=None,
        description="Labels of the nodes with this accelerator. Pods run on nodes of one of the wanted flavors, of an "
        "earlier one if they can. Absent means any node.",
    )
    params: Annotated[
        dict[str, str] | None,
        honoured("where the BackendRuntime has a placeholder of that name; INSTANCE-TYPE selects nodes, too"),
    ] = Field(
        default=None,
        description="Values of placeholders such as {{ .TP }} in a BackendRuntime. TP and PP are the tensor-parallel "
        "and pipeline-parallel sizes; TP defaults to the number of devices in limits. INSTANCE-TYPE is the nodes' "
        "node.kubernetes.io/instance-type where nodeSelector is absent.",
    )


class InferenceConfig(KubeModel):
    """What serving the model takes."""

    flavors: list[Flavor] | None = Field(
        default=None, max_length=8, description="Accelerators that the model can run on, best first."
    )


class OpenModelSpec(KubeModel):
    """One model."""

    family_name: Annotated[str, honoured("a label on pods; the object itself gets no label")] = Field(
        description="The model's family, for example llama3; a label on every pod that serves it."
    )
    source: ModelSource = Field(description="Where the weights come from.")
    inference_config: InferenceConfig | None = Field(default=None, description="What serving the model takes.")
    owned_by: Annotated[str, honoured("with the component envoy-ai-gateway")] = Field(
        default="llmaz", description="Who owns the model, in the gateway's list of models."
    )
    created_at: Annotated[DateTime | None, honoured("with the component envoy-ai-gateway")] = Field(
        default=None,
        description="When the model was made, in the gateway's list of models. Absent: when the OpenModel was created.",
    )


class OpenModelStatus(Status):
    """What is known of an OpenModel."""

    conditions: Annotated[list[Condition], Meta(description="Whether the model can be used.")] = msgspec.field(
        default_factory=list
    )


OpenModel = Resource[OpenModelSpec, OpenModelStatus]
