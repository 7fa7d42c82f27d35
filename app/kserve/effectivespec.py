"""The type of an effective spec: what goes into children is plain JSON, rendered already.

Fields are widened to it here, which a type checker allows no subclass: hence the ignores.
"""

from __future__ import annotations

from pydantic import Field

from app.kserve.llminferenceservice import types
from app.kserve.llminferenceserviceconfig.types import ConfigModelSpec
from app.kube.base import Json


class EffectivePool(types.PoolSpec):
    spec: Json | None = Field(None, description="Content of the managed pool, in the form of InferencePool v1.")  # type: ignore[assignment]


class EffectiveScheduler(types.SchedulerSpec):
    pool: EffectivePool | None = Field(None, description="The pool.")
    config: Json | None = Field(None, description="The configuration: inline, as JSON or as the text of a ConfigMap.")  # type: ignore[assignment]


class EffectiveHTTP(types.HTTPRouteConfig):
    spec: Json | None = Field(None, description="Content of the managed HTTPRoute.")  # type: ignore[assignment]


class EffectiveRoute(types.RouteSpec):
    http: EffectiveHTTP | None = Field(None, description="The HTTPRoute.")


class EffectiveRouter(types.RouterSpec):
    route: EffectiveRoute | None = Field(None, description="HTTP routing.")
    scheduler: EffectiveScheduler | None = Field(None, description="The endpoint picker.")


class EffectiveSpec(types.LLMInferenceServiceSpec):
    """A merged and rendered spec. What goes into children is plain JSON."""

    model: ConfigModelSpec | None = Field(None, description="Which model is served.")
    router: EffectiveRouter | None = Field(None, description="How requests reach the model.")
