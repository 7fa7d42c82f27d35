"""Rules between the fields of volumes and mounts; :mod:`app.hooks.sendable` finds duplicates."""

import re
from collections.abc import Collection, Sequence
from itertools import islice

from app.kube import field, quantity
from app.kube.spelling import closest_name
from app.limits import MAX_UNKNOWN_NAMES
from app.workload.rules.fieldrules import Errors, Json, leaves_its_root, matching, not_empty

_NO_VOLUME = "no volume of the pod has this name"


def one_source(volume: Json, path: field.Path) -> Errors:
    """Reject a second source of a volume (LK-V-K32). An unknown one may be of a newer Kubernetes."""
    sources = [key for key in volume if key not in ("name", "$patch") and volume[key] is not None]
    if len(sources) > 1:
        yield field.forbidden(path.child(sources[1]), f"{sources[0]} is set as well; a volume has exactly one source")


host_path = not_empty(
    "name a directory or file of the node",
    matching(lambda path: ".." not in path.split("/"), "must not contain '..'"),
)
mount_path = not_empty(
    "name a directory of the container, for example /data",
    matching(lambda path: ":" not in path, "must not contain ':'"),
)


size_limit = matching(
    lambda size: not quantity.is_quantity(str(size)) or quantity.parse(str(size)) >= 0, "must be 0 or more"
)
ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def claim_size(claim: Json, path: field.Path) -> Errors:
    """Require a size in the template of a claim."""
    if not ((claim.get("resources") or {}).get("requests") or {}).get("storage"):
        yield field.required(path.child("resources", "requests", "storage"), "write the size of the volume")


def file_path(value: str, path: field.Path) -> Errors:
    """Require a relative path without ``..`` of a file in a volume (LK-V-K33, LK-V-K35)."""
    if not value:
        yield field.required(path, "name the file inside the volume, for example config/app.yaml")
    elif leaves_its_root(value):
        yield field.invalid(path, value, "must be a relative path without '..', for example config/app.yaml")
    elif value.startswith(".."):
        yield field.invalid(path, value, "must not begin with '..'")


def file_mode(value: int, path: field.Path) -> Errors:
    """Reject permissions that no file has; ``644`` without a leading 0 is not octal in YAML."""
    if not 0 <= value <= 0o777:
        octal = f"0{value}" if re.fullmatch("[0-7]{3}", str(value)) else "0644"
        forms = (octal, str(int(octal, 8)))
        detail = f"must be between 0 and 0777 in octal; write {' or '.join(forms)}"
        yield field.invalid(path, value, field.Hint(detail, *forms))


def one_sub_path(mount: Json, path: field.Path) -> Errors:
    """Reject ``subPath`` beside ``subPathExpr``."""
    if mount.get("subPath") and mount.get("subPathExpr"):
        yield field.forbidden(path.child("subPathExpr"), "subPath is set as well; set one of them")


def mounted(mounts: Sequence[Json], path: field.Path, volumes: Collection[str]) -> Errors:
    """Require each mount to name one of the pod's volumes (LK-V-K34)."""
    names = ((mount_path.child("name"), mount.get("name") or "") for mount_path, mount in path.each(mounts))
    for where, name in islice((named for named in names if named[1] not in volumes), MAX_UNKNOWN_NAMES):
        hint = field.name_meant(closest_name(name, volumes)) or "; add it to extraVolumes"
        yield field.invalid(where, name, field.with_hint(_NO_VOLUME, hint))
