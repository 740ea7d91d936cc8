"""What a request is refused with: codes of the specification, each with the status that goes with it."""

from __future__ import annotations

from typing import Any, ClassVar


class Refused(Exception):
    """
    A request that is not done.

    Args:
        message: What is wrong, for people.
        details: The same for programs, such as ``field``.
    """

    status: ClassVar[int] = 400
    code: ClassVar[str] = "invalid_request"
    kind: ClassVar[str] = ""  # Empty: its code.
    hint: ClassVar[str] = "Change the request as the message says."
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: Any) -> None:
        self.message, self.details = message, details
        super().__init__(message)


class Invalid(Refused):
    """A field of the request is missing or wrong."""

    kind = "validation_error"

    def __init__(self, field: str, problem: str, **details: Any) -> None:
        super().__init__(f"{field} {problem}", field=field, **details)


class Unprocessable(Invalid):
    """A field is well formed, and asks for what cannot be."""

    status = 422


class NotJSON(Refused):
    """The body cannot be read."""

    code, kind = "invalid_payload", "validation_error"
    hint = "Send one JSON object in UTF-8."


class NotFound(Refused):
    """What is named is not there."""

    status, code = 404, "not_found"
    hint = "Look whether the name or the id is right, and whether it was pruned."


class Conflict(Refused):
    """The job is in a state that does not allow this, or is somebody else's."""

    status, code = 409, "conflict"
    hint = "Read the job, and go by its state."


class Duplicate(Refused):
    """It is there already."""

    status, code = 409, "duplicate"
    hint = "Take another id or name, or use what is there."


class QueuePaused(Refused):
    """The queue takes no jobs for now."""

    status, code, retryable = 422, "queue_paused", True
    hint = "Resume the queue, or send the job later."


class Unsupported(Refused):
    """The client asks for another version, or for what is not there."""

    status, code = 422, "unsupported"
    hint = "See /ojs/manifest for what there is."


class NotAuthenticated(Refused):
    """Nobody knows who asks."""

    status, code = 401, "unauthenticated"
    hint = "Send credentials."


class Forbidden(Refused):
    """Whoever asks may not."""

    status, code = 403, "forbidden"
    hint = "Ask for the permission that the message names."


class NotAllowed(Refused):
    """The address is there, but not for this method."""

    status, code = 405, "method_not_allowed"
    hint = "See the header Allow."
