"""``Idempotency-Key``: a request that is sent again, because its answer was lost, acts once and is answered alike."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from timeline.operations.answering import claim_key, keep_answer
from timeline.store.isolating import atomic

if TYPE_CHECKING:
    from rest_framework.request import Request

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
KEYS: Final = r"^[!-~]{1,255}$"


class Outcome(NamedTuple):
    """
    What a request did.

    Args:
        said: What of it is kept, as JSON can hold it.
        status: Of the answer.
        headers: That the answer has beside those that all have.
    """

    said: Any
    status: int = 200
    headers: Mapping[str, str] = {}


def answer_once(
    request: Request, act: Callable[[], Outcome], show: Callable[[Any, bool], Any], *, using: str
) -> Response:
    """
    Act, unless the same request of the same user did: then answer as it was answered.

    Args:
        request: Of somebody who may do this. Without a key, and of users that have no primary key, it acts each time.
        act: Does it. What it raises takes back all that it did, and frees the key.
        show: Makes an answer's data of what is kept, for whoever asks now: they may have lost the right to some of it. Is told
            whether it was done before.
        using: Database alias of what is acted on.

    Raises:
        ValidationError: if the key is none.
        KeyReused: if the key was sent with another method, address or body.
    """
    given = key_in(request)
    if given is None:
        return _answer(act(), show)
    key = _key(request, given)
    with atomic(using=using):
        before = claim_key(key, _fingerprint(request), using=using)
        if before is not None:
            headers = {**before.headers, REPLAYED: "true"}
            return _answer(Outcome(json.loads(before.body), before.status, headers), show, again=True)
        outcome = act()
        body = JSONRenderer().render(outcome.said).decode()
        keep_answer(key, status=outcome.status, headers=outcome.headers, body=body, using=using)
        return _answer(outcome, show)


def key_in(request: Request) -> str | None:
    """
    Read the key of a request; None: it has none, or nobody's keys could be told from others'.

    Raises:
        ValidationError: if the key is none.
    """
    given = request.headers.get(HEADER)
    if given is None or getattr(request.user, "pk", None) is None:
        return None
    if not re.fullmatch(KEYS, given):
        raise ValidationError({HEADER: _("Give 1 to 255 visible ASCII characters.")})
    return given


def _answer(outcome: Outcome, show: Callable[[Any, bool], Any], *, again: bool = False) -> Response:
    return Response(show(outcome.said, again), outcome.status, headers=dict(outcome.headers))


def _key(request: Request, given: str) -> str:
    """Name a user's key, so that nobody else has it, and that what is stored does not tell it."""
    kind = request.user.__class__
    return _hash([kind.__module__, kind.__qualname__, str(request.user.pk), given])


def _fingerprint(request: Request) -> str:
    return _hash([request.method, request.path, request.data])


def _hash(parts: list[object]) -> str:
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
