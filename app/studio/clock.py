"""The time in a simulated cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from app.cli.offline import NOW


@dataclass
class Clock:
    """Seconds since the manifests were applied, which whoever simulates moves on."""

    seconds: int = 0

    def now(self) -> datetime:
        """The time as hooks are told it."""
        return NOW + timedelta(seconds=self.seconds)

    @property
    def text(self) -> str:
        """The time as Kubernetes writes it."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
