"""Conditions of requests (RFC 9110): a task's tag, ``If-Match`` on what changes it, ``If-None-Match`` on what reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Field
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from timeline.models import ScheduledTask
from timeline.operations.repeated_requests import claim_key, keep_answer
from timeline.store.transactions import atomic

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response

    from timeline.models import ScheduledTask


_ANY: Final = r'(?:W/)?"[!#-+\--~]*"'
TAGS: Final = rf"^(?:\*|{_ANY}(?:[ \t]*,[ \t]*{_ANY})*)$"
# A tag of ours: how often the task has changed, and what was shown of it.
_TAG: Final = re.compile(r'"([0-9]{1,10})(?:-[0-9a-f]{1,64})?"')

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
KEYS: Final = r"^[!-~]{1,255}$"
# Read by few, and shown by no list: they are not kept a second time. Whoever asks a task for them gets what its row has now.
_LEFT_OUT: Final = ("payload", "result", "error")


def tag_of(task: ScheduledTask, shown: object = None) -> str:
    """Name a state of a task, and all that is ``shown`` of it; None: only whether the task has changed counts."""
    if shown is None:
        return f'"{task.seq}"'
    return f'"{task.seq}-{sha256(JSONRenderer().render(shown)).hexdigest()[:16]}"'


def not_modified(request: Request, answer: Response, tag: str) -> None:
    """Tag an answer; leave its body out if the one who asks has it."""
    answer["ETag"] = tag
    given = request.headers.get("If-None-Match", "")
    if given.strip() == "*" or tag in (part.strip().removeprefix("W/") for part in given.split(",")):
        answer.status_code, answer.data = status.HTTP_304_NOT_MODIFIED, None


def seen_by(request: Request, pk: UUID, now: int) -> dict[UUID, int] | None:
    """Task id → ``seq`` that ``If-Match`` says was seen; None: any. Of several tags, the one that is ``now`` counts."""
    given = request.headers.get("If-Match", "*").strip()
    if not re.fullmatch(TAGS, given):
        raise ValidationError({"If-Match": _("Give a task's ETag, or its seq in quotation marks.")})
    if given == "*":
        return None
    seen = [int(found[1]) for part in given.split(",") if (found := _TAG.fullmatch(part.strip()))]
    return {pk: now if now in seen else next(iter(seen), -1)}


class RequestOutcome(NamedTuple):
    """What a request did: what of it is kept, as JSON can hold it; the answer's status and its own headers."""

    said: Any
    status: int = 200
    headers: Mapping[str, str] = {}


def answer_once(
    request: Request,
    act: Callable[[], RequestOutcome],
    show: Callable[[Any, bool], Any] = lambda said, _again: said,
    *,
    using: str,
) -> Response:
    """
    Act, unless the same request of the same user did: then answer as it was answered. Without a key, it acts each time.

    What ``act`` raises takes back all that it did, and frees the key. ``show`` gets what is kept, and whether it was done
    before: who asks may read less by now. Raises ``ValidationError``, or ``KeyReused`` for another method, address or body.
    """
    given = key_in(request)
    if given is None:
        return _answer(act(), show)
    key = _key(request, given)
    with atomic(using=using):
        before = claim_key(key, _fingerprint(request), using=using)
        if before is not None:
            headers = {**before.headers, REPLAYED: "true"}
            return _answer(RequestOutcome(json.loads(before.body), before.status, headers), show, again=True)
        outcome = act()
        body = JSONRenderer().render(outcome.said).decode()
        keep_answer(key, status=outcome.status, headers=outcome.headers, body=body, using=using)
        return _answer(outcome, show)


def key_in(request: Request) -> str | None:
    """The key of a request; None: it has none, or nobody's keys could be told from others'. Refused, if it is none."""
    given = request.headers.get(HEADER)
    if given is None or getattr(request.user, "pk", None) is None:
        return None
    if not re.fullmatch(KEYS, given):
        raise ValidationError({HEADER: _("Give 1 to 255 visible ASCII characters.")})
    return given


def _answer(outcome: RequestOutcome, show: Callable[[Any, bool], Any], *, again: bool = False) -> Response:
    return Response(show(outcome.said, again), outcome.status, headers=dict(outcome.headers))


def _key(request: Request, given: str) -> str:
    """Name a user's key, so that nobody else has it, and that what is stored does not tell it."""
    kind = request.user.__class__
    return _hash([kind.__module__, kind.__qualname__, str(request.user.pk), given])


def _fingerprint(request: Request) -> str:
    return _hash([request.method, request.path, request.data])


def _hash(parts: list[object]) -> str:
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def columns_of(task: ScheduledTask) -> dict[str, str | None]:
    """Write a task down: names of columns → values as text."""
    return {
        field.attname: None if field.value_from_object(task) is None else field.value_to_string(task)
        for field in _fields()
    }


def row_of(columns: Mapping[str, str | None], *, using: str) -> ScheduledTask:
    """Read back a task that ``columns_of`` wrote down, perhaps of another version."""
    fields = [field for field in _fields() if field.attname in columns]
    values = [None if (text := columns[field.attname]) is None else field.to_python(text) for field in fields]
    return ScheduledTask.from_db(using, [field.attname for field in fields], values)


def _fields() -> Iterator[Field[Any, Any]]:
    return (field for field in ScheduledTask._meta.concrete_fields if field.attname not in _LEFT_OUT)
