"""Annotations that ask for devices by dynamic resource allocation, as in KServe v0.20.

No claim is made for them here, but what v0.20 refuses is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.kube import field
from app.kube.names import is_dns1123_subdomain
from app.kube.objects import ObjectMeta

_PREFIX = "serving.kserve.io/exp-dra-"
_CLASS, _COUNT, _SELECTOR = f"{_PREFIX}device-class", f"{_PREFIX}device-count", f"{_PREFIX}cel-selector"
_POSITIVE = re.compile(r"0*[1-9][0-9]*")
ANNOTATIONS = field.Path("metadata").child("annotations")


def device_annotations(metadata: ObjectMeta) -> list[str]:
    return sorted(key for key in metadata.annotations or {} if key.startswith(_PREFIX))


def check(metadata: ObjectMeta) -> Iterator[field.Error]:
    annotations = metadata.annotations or {}
    if not device_annotations(metadata):
        return
    device_class, count = annotations.get(_CLASS, ""), annotations.get(_COUNT)
    if not device_class:
        yield field.required(ANNOTATIONS.key(_CLASS), "name the DeviceClass that devices are claimed of")
    elif not is_dns1123_subdomain(device_class):
        yield field.invalid(ANNOTATIONS.key(_CLASS), device_class, "must be the name of a DeviceClass")
    if count is not None and not _POSITIVE.fullmatch(count):
        yield field.invalid(ANNOTATIONS.key(_COUNT), count, "must be a positive number")
    if not annotations.get(_SELECTOR, "-").strip():
        yield field.invalid(ANNOTATIONS.key(_SELECTOR), annotations[_SELECTOR], "must be a CEL expression")
