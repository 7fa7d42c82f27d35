"""The images of engines and of the downloader that people use: as which user they run, and where they write.

``images.csv`` has what the image of each release is built with.
"""

import csv
from functools import cache
from importlib import resources

import msgspec

from app.workload.address import repository_and_tag

ROOT = 0


class EngineImage(msgspec.Struct, frozen=True):
    """The configuration of an image of a registry."""

    image: str
    user: int
    name: str
    """The user of the image, where it is a name."""
    home: str
    writes: str
    """The directory that a server fills; empty if it writes none."""
    entrypoint: str
    release: str
    """The release that was looked at."""
    source: str

    @property
    def needs_home(self) -> bool:
        """Report whether a server of this image cannot start as a user without a home directory."""
        return self.writes.startswith(self.home)


@cache
def engine_images() -> dict[str, EngineImage]:
    text = resources.files(__package__).joinpath("images.csv").read_text(encoding="utf-8")
    rows = msgspec.convert(list(csv.DictReader(text.splitlines())), list[EngineImage], strict=False)
    return {row.image: row for row in rows}


def engine_image(name: str) -> EngineImage | None:
    """Return the configuration of an image; ``None`` for one that is not known, such as a variant without root."""
    repository, tag = repository_and_tag(name)
    return None if "nonroot" in tag else engine_images().get(repository)
