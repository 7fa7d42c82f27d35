"""Documents of the editor as the command line reads files, and the settings that go with them."""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import ValidationError

from app.desk.cluster import offline
from app.desk.cluster.offline import World, identity
from app.desk.cluster.sets import split
from app.desk.cluster.simulate import Cluster
from app.desk.files.manifests import Manifest, ManifestFiles
from app.errors import CommandError
from app.kube.field import METADATA
from app.settings import Settings, unknown_variables, variable_name
from app.studio.models import Document, Manifests
from app.studio.stored import is_stored


class Unknown(CommandError):
    """The requested object does not exist."""


def read(documents: Iterable[Document]) -> ManifestFiles:
    """Read the documents; one that cannot be read becomes a finding."""
    reading = ManifestFiles()
    for document in documents:
        reading.add(document.text, document.name, whole=True)
    return reading


def objects(documents: Iterable[Document], namespace: str) -> list[Manifest]:
    """Return the objects that a cluster could hold; ``check`` reports the others."""
    manifests = read(documents).manifests
    return [item for item in manifests if identity(item, namespace) is not None and is_stored(item.document)]


def holding(manifests: Sequence[Manifest], world: World) -> Cluster:
    """Build a cluster in memory with the documents' objects; one that is described twice is refused, too."""
    cluster = offline.holding(manifests, world)
    twice = split([*manifests], world.namespace).findings
    errors = {(finding.file, finding.line): finding.message for finding in twice if finding.level == "error"}
    for manifest in manifests if errors else ():
        key = identity(manifest, world.namespace)
        message = errors.get((manifest.file, manifest.position(METADATA.child("name"))[0]))
        if key is not None and message is not None:
            cluster.refused.setdefault(key, message)
    return cluster


def world(request: Manifests) -> World:
    """Return the cluster that a request is about. Raises :class:`CommandError` for wrong settings."""
    return World(request.namespace, settings=settings(request.settings))


def settings(variables: Mapping[str, str]) -> Settings:
    """Return the settings that these variables make, without the environment's. Raises :class:`CommandError`."""
    fields = {variable_name(name): name for name in Settings.model_fields}
    if unknown := [name for name in variables if name not in fields]:
        raise CommandError((unknown_variables(variables) or [f"{unknown[0]} is not a setting"])[0])
    try:
        return Settings(**{fields[name]: value for name, value in variables.items()})
    except ValidationError as error:
        wrong = error.errors()[0]
        raise CommandError(f"{variable_name(str(wrong['loc'][0]))}: {wrong['msg']}") from None
