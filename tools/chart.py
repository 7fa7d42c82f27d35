"""The Helm chart's values: their defaults, their descriptions, and the schema that Helm checks them with.

The chart's objects are the files of kustomize (decisions/0018-chart.md), so only the user's values are defined
here; :mod:`tools.generate` makes ``values.yaml`` and ``values.schema.json`` from them.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import GenerateJsonSchema

from app.desk.files import yaml
from app.kube.base import Json
from app.settings import Settings, variable_name

NotEmpty = Annotated[str, Field(min_length=1)]


class Part(BaseModel):
    """A group of values. Unknown ones are refused, because Helm would ignore a typing error."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Image(Part):
    """The image of the service and of the certificates' Job."""

    repository: NotEmpty = "modelhooks"
    """Repository from which your nodes pull it."""

    tag: str = ""
    """Defaults to the chart's appVersion."""

    digest: Annotated[str, Field(pattern="^(sha256:[0-9a-f]{64})?$")] = ""
    """Replaces the tag, for example sha256:..."""

    pullPolicy: Literal["", "Always", "IfNotPresent", "Never"] = ""  # noqa: N815 - values are spelt as in Kubernetes
    """Defaults to Kubernetes' default."""

    pullSecrets: list[Json] = []  # noqa: N815 - as above
    """Secrets to pull it with, such as [{name: registry}]."""


class Enabled(Part):
    """A part of the installation that can be left out."""

    enabled: bool


class Metacontroller(Part):
    """ServiceAccount of Metacontroller, which gets the rights of metacontroller/rbac."""

    namespace: NotEmpty = "metacontroller"
    serviceAccount: NotEmpty = "metacontroller"  # noqa: N815 - as above


class Admission(Part):
    """The validating webhooks."""

    failurePolicy: Literal["Fail", "Ignore"] = "Fail"  # noqa: N815 - as above
    """Ignore: objects are accepted unchecked while the service cannot be reached; hooks then say what is wrong."""


class NetworkPolicy(Part):
    """Peers that may connect to the service."""

    model_config = ConfigDict(populate_by_name=True)

    origins: list[Json] = Field(default=[], alias="from")
    """Peers of a NetworkPolicy: API servers and Metacontroller. Replaces podCIDRs."""

    podCIDRs: list[str] = []  # noqa: N815 - as above
    """Pod networks of the cluster. Pods there may not connect, except those of Metacontroller's namespace and
    kube-system. Empty: everybody may connect (docs/security.md)."""


class Values(Part):
    """Values of the chart, except those that are generated: components, settings, replicas and resources."""

    image: Image = Image()

    certificates: Literal["self-signed", "cert-manager"] = "self-signed"
    """Issuer of the certificates: self-signed (a Job, renewed by a nightly CronJob) or cert-manager."""

    crds: Enabled = Enabled(enabled=True)
    """The CustomResourceDefinitions. Uninstalling never deletes them."""

    priorityClasses: Enabled = Enabled(enabled=True)  # noqa: N815 - as above
    """The five PriorityClasses of LLMKube's pods. Disable if LLMKube's chart created them. Never deleted."""

    metacontroller: Metacontroller = Metacontroller()

    admission: Admission = Admission()

    monitoring: Enabled = Enabled(enabled=False)
    """A ServiceMonitor, a PrometheusRule and a dashboard for Grafana. Needs the CRDs of the Prometheus operator."""

    networkPolicy: NetworkPolicy = NetworkPolicy()  # noqa: N815 - as above

    nodeSelector: dict[str, str] = {}  # noqa: N815 - as above
    """Of all pods."""

    tolerations: list[Json] = []
    """Of all pods."""

    affinity: Json = {}
    """Of all pods."""

    podLabels: dict[str, str] = {}  # noqa: N815 - as above
    """More labels of all pods."""

    podAnnotations: dict[str, str] = {}  # noqa: N815 - as above
    """Annotations of all pods."""


SET_BY_THE_DEPLOYMENT = frozenset({"host", "port", "tls_cert_file", "tls_key_file", "lameduck_seconds"})
"""Settings that must match the Deployment's probes, ports and volumes; in the ConfigMap they would not."""


LLMAZ_VALUES = {
    "envoy-ai-gateway": "install the Envoy AI Gateway, then set components to [envoy-ai-gateway]",
    "envoy-gateway": "install Envoy Gateway, then set components to [envoy-ai-gateway]",
    "kube-scheduler": "apply manifests/components/inftyai-scheduler",
    "leaderWorkerSet": "install LeaderWorkerSet, then set components to [leaderworkerset]",
    "open-webui": "apply manifests/components/open-webui",
    "prometheus": "set monitoring.enabled to true, or apply manifests/components/prometheus",
}
"""Values of llmaz' own chart, and their replacements; templates fail with these texts."""


def files(components: Iterable[str], families: Mapping[str, str], deployment: Json, version: str) -> dict[str, str]:
    """Return the generated files by path.

    ``families`` are the names of families with the domain of their API groups. ``deployment`` is the Deployment of
    ``manifests/base``, whose numbers are the defaults.
    """
    model = _values(sorted(components), tuple(families), deployment)
    schema = model.model_json_schema(by_alias=True, schema_generator=_Untitled)
    schema["properties"]["settings"] = _settings(schema["properties"]["settings"])
    schema["properties"] |= {name: {"description": f"Of llmaz' chart: {text}."} for name, text in LLMAZ_VALUES.items()}
    schema["properties"]["global"] = {"type": "object", "description": "Of a parent chart; not read here."}
    values = model().model_dump(by_alias=True)
    return {
        "manifests/chart/Chart.yaml": yaml.dump(_metadata(version)),
        "manifests/chart/tables.yaml": yaml.dump({"families": dict(families), "llmazValues": LLMAZ_VALUES}),
        "manifests/chart/values.yaml": "\n".join(_documented(model, values)).lstrip() + "\n",
        "manifests/chart/values.schema.json": json.dumps(schema, indent=2) + "\n",
    }


class _Untitled(GenerateJsonSchema):
    """Generates a schema without titles, which would repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def _metadata(version: str) -> Json:
    return {
        "apiVersion": "v2",
        "name": "modelhooks",
        "description": "Metacontroller hooks and admission for the LLM serving APIs of LLMKube, llmaz and KServe",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.30.0-0",
    }


def _values(components: list[str], families: tuple[str, ...], deployment: Json) -> type[Values]:
    """Return the model of all values, including families, components, replicas and resources of the project."""
    spec = deployment["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    names: Any = Literal[tuple(components)]
    family_names: Any = Literal[families]
    return create_model(
        "Values",
        __base__=Values,
        families=(
            Annotated[list[family_names], Field(min_length=1)],
            Field(
                default=list(families),
                description="Families of resources: their CustomResourceDefinitions, hooks, webhooks and "
                "PriorityClasses. Resources of a family that is left out later stay, and nothing reconciles them.",
            ),
        ),
        replicas=(
            Annotated[int, Field(ge=0)],
            Field(default=spec["replicas"], description="Of the service. Admission fails closed: have two."),
        ),
        resources=(Json, Field(default=container["resources"], description="Of the service.")),
        components=(
            list[names],
            Field(
                default=[],
                description=f"Child kinds that not every cluster has, by the table in docs/install.md: "
                f"{', '.join(components)}.",
            ),
        ),
        settings=(
            Json,
            Field(
                default={},
                description="MODELHOOKS_... variables, by the table in docs/operations/settings.md. A change restarts "
                "the service; models only where it reaches their pods.",
            ),
        ),
    )


def _settings(schema: Json) -> Json:
    """Return the schema of the settings by variable: strings, or numbers and booleans in YAML."""
    scalar = {"type": ["string", "number", "boolean"]}
    variables: Json = {}
    for name, setting in Settings.model_json_schema()["properties"].items():
        if name not in SET_BY_THE_DEPLOYMENT:
            variables[variable_name(name)] = {"enum": setting["enum"]} if "enum" in setting else scalar
    return {**schema, "properties": variables, "additionalProperties": False}


def _documented(model: type[BaseModel], values: Json, indent: str = "") -> Iterator[str]:
    """Write YAML with the description of each value above it."""
    for field in model.model_fields.values():
        name = field.alias or next(key for key, info in model.model_fields.items() if info is field)
        part = field.annotation if isinstance(field.annotation, type) and issubclass(field.annotation, Part) else None
        text = field.description or (part.__doc__ if part else None)
        if not indent:
            yield ""
        if text:
            prefix = f"{indent}# "
            yield from textwrap.wrap(text, 118, initial_indent=prefix, subsequent_indent=prefix)
        if part:
            yield f"{indent}{name}:"
            yield from _documented(part, values[name], indent + "  ")
        else:
            yield from textwrap.indent(yaml.dump({name: values[name]}), indent).splitlines()
