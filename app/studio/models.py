"""Requests and answers of the studio's page, as JSON in camelCase. Lines and columns count from 1.

An end is behind the last character, as editors have it: a range whose ends are equal is empty.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from app.kube.base import Json

Level = Literal["error", "warning", "advice"]
"""``advice`` is a warning that is probably, but not surely, a mistake."""
Role = Literal["parent", "related", "child", "pod"]
Ready = Literal["True", "False", "Unknown"]
Action = Literal["added", "modified", "deleted"]
Answer = Literal["fits", "does not fit", "cannot know"]
State = Literal["ready", "waiting", "failing", "refused", "absent"]


class Model(BaseModel):
    """A value of the page: camelCase outside, and nothing beside the fields that are named."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Document(Model):
    """One tab of the editor: a file of YAML with any number of objects."""

    name: str = Field(max_length=1024, examples=["chat.yaml"])
    text: str = Field(max_length=4_000_000)


class Manifests(Model):
    """Documents that are on one cluster together."""

    documents: list[Document] = Field(max_length=1000)
    namespace: str = Field(default="default", description="The namespace of objects without one.")
    settings: dict[str, str] = Field(
        default_factory=dict,
        description="Settings of the service by variable, as in `GET /api/settings`; the default for the others.",
    )


# Session.


class Session(Model):
    """The initial data of the page."""

    version: str
    live: bool = Field(description="Whether there is a cluster: the paths below `/api/live` answer.")
    context: str = Field(description="The kubeconfig's context of live mode; empty without live mode.")
    documents: list[Document] = Field(description="The files of the command line.")
    docs: str = Field(description="The address of the documentation, with a slash at its end.")
    fields: dict[str, str] = Field(description="The page about the fields of each kind below it, by `apiVersion/kind`.")


class Example(Model):
    """A manifest of each use that the documentation names."""

    name: str = Field(description="Unique: `llmkube/quickstart`.")
    family: str = Field(description="`kserve`, `llmaz` or `llmkube`.")
    title: str = Field(description="The first sentence of the comment it begins with.")
    text: str


class Setting(Model):
    """A setting of the service that changes what manifests become."""

    name: str = Field(description="The variable, such as `MODELHOOKS_CLUSTER_DOMAIN`.")
    default: str
    description: str


# Findings.


class Range(Model):
    """A part of a document."""

    document: str = Field(description="The document's name.")
    line: int
    column: int
    end_line: int
    end_column: int


class TextEdit(Range):
    """Put ``text`` in place of the range."""

    text: str


class Correction(Model):
    """A correction that can be applied as it is."""

    title: str = Field(description="What it does, for a button: `Write replicas`.")
    edits: list[TextEdit] = Field(description="They do not overlap; apply all of them together.")


class PlacedFinding(Range):
    """A finding of `modelhooks validate`."""

    level: Level
    id: str = Field(description="The section of docs/findings.md: `unknown-field`.")
    help: str = Field(description="The address of that section.")
    path: str = Field(description="The field; empty where the whole document cannot be read.")
    message: str
    fixes: list[Correction] = Field(default_factory=list, description="Corrections of which one may be chosen.")


# Graph.


class Node(Model):
    """One object."""

    id: str = Field(description="`Deployment.apps/v1 default/chat`; the same in every answer.")
    api_version: str
    kind: str
    namespace: str = Field(description="Empty for an object of the whole cluster.")
    name: str
    role: Role
    family: str = Field(default="", description="`kserve`, `llmaz` or `llmkube` for a kind that is served.")
    state: State
    cause: str = Field(description="The message of its condition Ready; empty if it is ready.")
    yaml: str = Field(description="Empty for an absent object, and where it was not requested.")
    conditions: list[Json] = Field(description="Those of its status.")
    document: str | None = Field(default=None, description="Where it is written, unless something else made it.")
    line: int | None = None


class Edge(Model):
    """A relation between two objects."""

    source: str = Field(description="A node's id.")
    target: str
    label: str = Field(description="One or two words: `reads`, `makes`, `runs`, `mounts`, `scales`.")


class Graph(Model):
    """Parents, the objects that they read, their children, and the pods."""

    nodes: list[Node]
    edges: list[Edge]


class ScenesRequest(Manifests):
    """The manifests and what happens to them; without scenes, everything runs."""

    scenes: list[str] = Field(default_factory=list, description="Names of `GET /api/scenes`.")


class GraphRequest(ScenesRequest):
    """The graph in which ``scenes`` end."""

    yaml: bool = Field(default=True, description="Includes every node's YAML; `POST /api/yaml` returns one of them.")
    outline: bool = Field(
        default=False,
        description="Only the objects of the documents and what they read, before the hooks are asked: soon, for many.",
    )


class ObjectRequest(ScenesRequest):
    """One object of that graph, or of a step of `POST /api/simulate`."""

    node: str = Field(description="Its id.")
    step: int | None = Field(default=None, ge=0, description="The number of the step; the last state without it.")


# Origins.


class OriginsRequest(Manifests):
    """The object and the values whose sources are requested."""

    node: str = Field(description="The id of a parent or a child.")
    filter: str = Field(default="", description="Only values whose path contains this.")


class ValueOrigin(Model):
    """One value of a child, and who set it."""

    path: str = Field(description="`Deployment/chat spec.template.spec.containers[main].image`")
    value: Any
    origin: str = Field(description="As in `modelhooks explain`: a field, an object and its field, or `default`.")
    document: str | None = Field(default=None, description="Where the value is written, if it is.")
    line: int | None = None
    column: int | None = None


# Memory.


class FitRequest(Manifests):
    """The resource whose model is judged."""

    node: str = Field(description="Its id.")


class FitRow(Model):
    """One line of the arithmetic."""

    name: str = Field(description="What uses or provides memory.")
    amount: str
    source: str = Field(description="Where the amount comes from.")


class ModelFit(Model):
    """Whether a model fits into its GPUs, as `modelhooks fit` says it."""

    answer: Answer
    why: str = Field(description="One sentence.")
    rows: list[FitRow]
    enough: list[str] = Field(description="GPUs that would be enough, the smallest first; empty for a model that fits.")


# Simulation.


class SceneOption(Model):
    """Something that happens to pods, claims or nodes."""

    name: str = Field(description="`image-pull-fails`")
    title: str
    description: str


class ParentReadiness(Model):
    """The status of a parent at one moment."""

    node: str = Field(description="Its id in the graph.")
    ready: Ready
    reason: str
    message: str = Field(description="That of the condition Ready, word for word.")
    conditions: list[Json]


class Step(Model):
    """One moment, after the hooks have answered what changed."""

    title: str = Field(description="What happened since the step before.")
    seconds: int = Field(description="Since the manifests were applied.")
    graph: Graph
    parents: list[ParentReadiness]


class Simulation(Model):
    """The simulated run of the manifests, until nothing changes."""

    steps: list[Step]
    notes: list[str] = Field(description="Scenes without an effect here, and why.")
    opens: int = Field(description="Position of the step to show first: what goes wrong, else the last.")


# Comparison.

Shown = Literal["none", "in place", "starts", "rolls pods", "recreates", "scales", "stops", "deletes data", "kept"]


class CompareRequest(Model):
    """Two versions of the manifests, of the settings, or of both."""

    before: list[Document] = Field(max_length=1000)
    after: list[Document] = Field(max_length=1000)
    namespace: str = "default"
    settings_before: dict[str, str] = Field(default_factory=dict)
    settings_after: dict[str, str] = Field(default_factory=dict)


class FieldChange(Model):
    """One value that changes. ``before`` is absent for one that is new, ``after`` for one that goes."""

    path: str
    before: Any = None
    after: Any = None
    effect: Shown


class ObjectChange(Model):
    """One child that changes."""

    node: str = Field(description="Its id in the graph.")
    kind: str
    namespace: str
    name: str
    action: Literal["create", "delete", "change"]
    effect: Shown
    words: str = Field(description="The effect in a sentence's words.")
    fields: list[FieldChange]


class FieldEdit(Model):
    """A field of the documents that differs, at its place in the new version."""

    document: str
    line: int
    column: int
    object: str = Field(description="Kind and name.")
    path: str = Field(description="Empty for an object that is new.")
    before: Any = None
    after: Any = None


class Comparison(Model):
    """The effect of the change, as `modelhooks diff` prints it."""

    edits: list[FieldEdit] = Field(description="What caused it; empty where only settings differ.")
    objects: list[ObjectChange]
    summary: str = Field(description="One sentence for all of them.")


# Live.


class LiveObject(Model):
    """A served object on the cluster."""

    family: str = Field(description="`kserve`, `llmaz` or `llmkube`.")
    kind: str
    resource: str = Field(description="`inferenceservice.inference.llmkube.dev`, as kubectl takes it.")
    namespace: str
    name: str
    ready: Ready
    cause: str = Field(description="The first cause of the condition Ready; empty when it is True.")


class LiveGraph(Graph):
    """The graph around one object of the cluster."""

    manifest: Document = Field(description="The object as one could have written it, for the editor.")
    related: list[Document] = Field(
        description="Likewise, the objects that it reads; for the paths that take documents."
    )


class LiveEvent(Model):
    """Something changed; an event of the stream carries this as its data."""

    action: Action
    node: str = Field(description="The ID of the changed object, a served one or a child.")
    namespace: str
    object: LiveObject | None = Field(default=None, description="The served object, as in the list.")


class LiveCompareRequest(Model):
    """An edited object of the cluster."""

    text: str = Field(max_length=4_000_000, description="The whole object, as in `manifest` of the live graph.")


class LiveComparison(Comparison):
    """The effect of the edit, and the command that applies it; the studio itself writes nothing."""

    command: str = Field(description="A shell command that applies the manifest.")
    findings: list[PlacedFinding]
