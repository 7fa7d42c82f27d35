"""Why nothing can be made, in words that Playground and Service share: reasons of their ``Ready``."""

from enum import StrEnum


class Obstacle(StrEnum):
    """What stands in the way; what runs is left alone until it is gone."""

    MODEL_NOT_FOUND = "ModelNotFound"
    """A claimed OpenModel does not exist."""
    MODEL_INVALID = "ModelInvalid"
    """A claimed OpenModel cannot be used."""
    MODEL_NOT_LOADABLE = "ModelNotLoadable"
    """The loader cannot fetch from where the model is."""
    BACKEND_RUNTIME_NOT_FOUND = "BackendRuntimeNotFound"
    """The BackendRuntime does not exist."""
    BACKEND_RUNTIME_INVALID = "BackendRuntimeInvalid"
    """The BackendRuntime cannot be used."""
    GLOBAL_CONFIG_INVALID = "GlobalConfigInvalid"
    """The ConfigMap with the family's configuration cannot be read."""
