"""Faults of the protocol, each with the status code its caller gets. A user's mistake is never one of them.

Metacontroller copies a refused answer's body into an Event, so the text is one line without any content of the request.
"""


class ProtocolError(Exception):
    """The request is not what the protocol says; ``status`` is the HTTP status of the answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class ResponseError(Exception):
    """We were about to send what Metacontroller chokes on: answered 500, so that nothing happens."""
