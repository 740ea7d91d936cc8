"""How requests are read and answered: content types, headers, errors."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.request import RawPostDataException
from django.views.decorators.csrf import csrf_exempt

from timeline.clocks import story_now
from timeline.exceptions import TimelineError
from timeline.ids import uuid7
from timeline.ojs.access import Caller, Right, caller_of
from timeline.ojs.errors import NotAllowed, NotFound, NotJSON, Refused, Unsupported
from timeline.ojs.jobs import database

logger = logging.getLogger("timeline")

MEDIA_TYPE: Final = "application/openjobspec+json"
ACCEPTED: Final = frozenset({MEDIA_TYPE, "application/json"})
VERSION: Final = "1.0"
DOCS: Final = "https://github.com/openjobspec/spec/blob/main/spec/ojs-http-binding.md#163-standard-error-codes"
_REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII)


@dataclass(slots=True)
class Asking:
    """A request, as the functions that answer it see it; ``now`` is read once, with a statement."""

    request: HttpRequest
    caller: Caller
    body: dict[str, Any]
    using: str = field(default_factory=database)
    _now: datetime | None = None

    @property
    def now(self) -> datetime:
        if self._now is None:
            self._now = story_now(self.using)
        return self._now

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.GET


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered, unless it is refused."""

    body: Mapping[str, Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """What answers a method of an address, and the rights of which one is needed; none: everybody may ask."""

    answer: Callable[..., Answer]
    rights: tuple[Right, ...] = ()


def view(**methods: Route) -> Callable[..., HttpResponse]:
    """A view: method, in lower case → what answers it. No cookie is enough to change anything: see ``_body_of``."""

    def answered(request: HttpRequest, **captured: str) -> HttpResponse:
        request_id = _request_id(request)
        try:
            answer = _answered(request, methods, captured)
        except Refused as error:
            return _refusal(error, request_id, ", ".join(name.upper() for name in methods))
        except (DatabaseError, TimelineError):
            logger.exception("A request of the Open Job Specification could not be done.")
            return _refusal(BackendError("The server cannot do this now."), request_id)
        return _response(answer.body, answer.status, request_id, answer.headers)

    return csrf_exempt(answered)


class BackendError(Refused):
    """The database does not answer, or is not to be used here."""

    status, code, retryable = 500, "backend_error", True
    hint = "Try again in a moment."


def _answered(request: HttpRequest, methods: Mapping[str, Route], captured: Mapping[str, str]) -> Answer:
    wanted = request.headers.get("OJS-Version", VERSION)
    if wanted not in (VERSION, "1", "1.0.0"):
        raise Unsupported(f"OJS-Version {wanted!a:.40} is not served here.", supported=[VERSION])
    route = methods.get("get" if request.method == "HEAD" else (request.method or "").lower())
    if route is None:
        raise NotAllowed(f"This address does not take {request.method}.")
    caller = caller_of(request, *route.rights) if route.rights else Caller()
    body = _body_of(request) if request.method == "POST" else {}
    return route.answer(Asking(request, caller, body), **captured)


def _body_of(request: HttpRequest) -> dict[str, Any]:
    """
    The object that was sent. Its content type is one that a page of another site cannot send without asking first: so no
    person's session is made use of by others.
    """
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind not in ACCEPTED:
        raise Refused(f"The content type has to be {MEDIA_TYPE}.", field="Content-Type", received=kind[:100])
    try:
        text = request.body.decode()
        found = json.loads(text, parse_constant=_refuse) if text.strip() else {}
    except (ValueError, RecursionError, RawPostDataException) as error:
        raise NotJSON(f"The body is no JSON that can be read: {error!s:.200}") from None
    except RequestDataTooBig:
        raise NotJSON("The body is too large.") from None
    if not isinstance(found, dict):
        raise NotJSON("The body has to be a JSON object.")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


def _request_id(request: HttpRequest) -> str:
    given = request.headers.get("X-Request-Id", "")
    return given if _REQUEST_ID.fullmatch(given) else f"req_{uuid7()}"


def _refusal(error: Refused, request_id: str, allowed: str = "") -> HttpResponse:
    told = {
        "code": error.code,
        "type": error.kind or error.code,
        "message": error.message,
        "retryable": error.retryable,
        "hint": error.hint,
        "docs_url": DOCS,
        "request_id": request_id,
        **({"details": error.details} if error.details else {}),
    }
    headers = {"Allow": allowed} if isinstance(error, NotAllowed) else {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return _response({"error": told}, error.status, request_id, headers)


def _response(body: Mapping[str, Any], status: int, request_id: str, headers: Mapping[str, str]) -> HttpResponse:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    answer = HttpResponse(text.encode(errors="replace"), status=status, content_type=MEDIA_TYPE)
    answer["OJS-Version"], answer["X-Request-Id"], answer["Cache-Control"] = VERSION, request_id, "no-store"
    for name, value in headers.items():
        answer[name] = value
    return answer


@csrf_exempt
def nothing(request: HttpRequest) -> HttpResponse:
    """There is nothing at this address."""
    return _refusal(NotFound(f"There is nothing at {request.path!a:.100}."), _request_id(request))
