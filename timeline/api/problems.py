"""Errors, mapped in one place: timeline's and REST framework's become problems as RFC 9457 describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import ObjectDoesNotExist, RequestDataTooBig
from django.utils.translation import gettext_lazy as _
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.views import exception_handler

from timeline.exceptions import (
    AlreadyDecided,
    AlreadyOpen,
    AlreadyReleased,
    AlreadyTaken,
    ChangedSince,
    DecidedTooLate,
    InvalidInput,
    KeyConflict,
    KeyReused,
    NoOpenRun,
    RunEnded,
    TimelineError,
    TransitionNotAllowed,
)

MEDIA_TYPE: Final = "application/problem+json"
NOT_THERE: Final = _("There is nothing here, or nothing that you may see.")
SEND_JSON: Final = _("Send JSON, with the header Content-Type: application/json.")

# The first that fits counts. Errors of no class listed here are faults of ours, and go on as such.
STATUSES: Final[Mapping[type[TimelineError], int]] = {
    KeyConflict: 409,
    ChangedSince: 412,
    KeyReused: 422,
    InvalidInput: 400,
    TransitionNotAllowed: 409,
    AlreadyOpen: 409,
    AlreadyDecided: 409,
    DecidedTooLate: 409,
    AlreadyReleased: 409,
    AlreadyTaken: 409,
    RunEnded: 409,
    NoOpenRun: 409,
}


class Refused(drf.APIException):
    """One of timeline's errors on its way to an answer."""

    def __init__(self, error: TimelineError, status: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.status_code = status


class BodyTooLarge(drf.APIException):
    """More than the site takes in one request (``DATA_UPLOAD_MAX_MEMORY_SIZE``)."""

    status_code = 413
    default_detail = _("The body is too large.")


def answer_problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """Answer an error as a problem; None for one that is a fault of the server's."""
    if isinstance(error, ObjectDoesNotExist):
        error = drf.NotFound()
    elif isinstance(error, RequestDataTooBig):
        error = BodyTooLarge()
    elif isinstance(error, TimelineError):
        status = next((code for kind, code in STATUSES.items() if isinstance(error, kind)), None)
        error = error if status is None else Refused(error, status)
    response = exception_handler(error, context)
    if response is not None:
        response.data = _problem(error, response)
        response.content_type = MEDIA_TYPE
    return response


def _problem(error: Exception, response: Response) -> dict[str, Any]:
    if isinstance(error, Refused):
        return _refusal(error.error, response.status_code)
    problem = {
        "type": "about:blank",
        "title": HTTPStatus(response.status_code).phrase,
        "status": response.status_code,
        "detail": "",
    }
    if response.status_code == HTTPStatus.NOT_FOUND:
        return problem | {"detail": str(NOT_THERE)}
    if isinstance(error, drf.ValidationError):
        errors = list(_flat(error.detail))
        return problem | {"detail": errors[0]["detail"], "field": errors[0]["field"], "errors": errors}
    told = {"detail": str(response.data.get("detail", ""))}
    return problem | told | ({"remedy": str(SEND_JSON)} if isinstance(error, drf.UnsupportedMediaType) else {})


def _refusal(error: TimelineError, status: int) -> dict[str, Any]:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__)
    told: dict[str, Any] = {name: str(getattr(error, name)) for name in ("field", "remedy") if getattr(error, name, "")}
    if changes := getattr(error, "changes", ()):
        told["changes"] = list(changes)
    return {
        "type": f"urn:timeline:{name.lower().replace(' ', '-')}",
        "title": name.capitalize(),
        "status": status,
        "detail": str(error),
        **told,
    }


def _flat(detail: Any, field: str = "") -> Iterator[dict[str, str]]:
    """Each message with the path of its field, ``entity.id``."""
    if isinstance(detail, dict):
        for name, below in detail.items():
            own = "" if name == "non_field_errors" else str(name)
            yield from _flat(below, ".".join(part for part in (field, own) if part))
    elif isinstance(detail, list):
        for below in detail:
            yield from _flat(below, field)
    else:
        yield {"field": field, "detail": str(detail).encode(errors="replace").decode()}  # Some repeat half a letter.
