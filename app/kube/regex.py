"""Regular expressions that are compiled when they are first used.

Commands and the service import two hundred, mainly for rare mistakes and for states of pods.
"""

import re
from functools import partial
from typing import Any, AnyStr, cast


class _Uncompiled:
    def __init__(self, expression: str | bytes, flags: int) -> None:
        self._compile = partial(re.compile, expression, flags)

    def __getattr__(self, name: str) -> Any:
        """Compile the expression, and keep what was asked for: the next time it is found without this method."""
        value = getattr(self._compile(), name)
        setattr(self, name, value)
        return value


def regex(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return an object with the methods of ``re.compile(expression, flags)``; ``re``'s own functions do not take it."""
    return cast("re.Pattern[AnyStr]", _Uncompiled(expression, flags))
