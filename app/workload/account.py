"""The ServiceAccount of pods that no longer name one."""

from __future__ import annotations

from app.kube.merge import find
from app.kube.objects import ObservedObject, last_applied

DEFAULT = "default"
"""The account of pods that name none."""

_NAME = ("spec", "template", "spec", "serviceAccountName")


def account_in_place(observed: ObservedObject | None, running: str) -> str:
    """What to send as ``serviceAccountName`` of a Deployment whose pods should name none; empty to leave it out.

    A name that was sent once cannot be taken away: the API server brings it back from the old field ``serviceAccount``,
    which it writes beside it, and pods go on under an account that may be gone. So the one that no name means is named,
    from then on. ``running`` is the observed name; one that another operator gave is left alone.
    """
    if observed is None or not running or not find(last_applied(observed), _NAME):
        return ""
    return DEFAULT
