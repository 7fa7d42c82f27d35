"""Protocol errors, with the HTTP status of their answer. A user's mistake is never one of them.

Metacontroller copies the body of a refusal into an Event, so the message is one line without any content of the
request.
"""


class ProtocolError(Exception):
    """A request that violates the protocol; ``status`` is the HTTP status of the answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class ResponseError(Exception):
    """An answer that Metacontroller cannot apply: a bug, answered 500 so that nothing happens."""


class CommandError(Exception):
    """A command cannot do what it is asked to: exit status 2. The message has the reason."""
