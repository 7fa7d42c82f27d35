"""The time in a simulated cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from app.cli.offline import NOW


@dataclass
class Clock:
    """Seconds since the manifests were applied; the simulation advances them."""

    seconds: int = 0

    def now(self) -> datetime:
        """Return the time that hooks get."""
        return NOW + timedelta(seconds=self.seconds)

    @property
    def text(self) -> str:
        """The time as Kubernetes writes it."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
