"""Conditions of requests (RFC 9110): a task's tag, ``If-Match`` on what changes it, ``If-None-Match`` on what reads it."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response

    from timeline.models import ScheduledTask

_ANY: Final = r'(?:W/)?"[!#-+\--~]*"'
TAGS: Final = rf"^(?:\*|{_ANY}(?:[ \t]*,[ \t]*{_ANY})*)$"
# A tag of ours: how often the task has changed, and what was shown of it.
_TAG: Final = re.compile(r'"([0-9]{1,10})(?:-[0-9a-f]{1,64})?"')


def tag_of(task: ScheduledTask, shown: object = None) -> str:
    """
    Name a state of a task.

    Args:
        task: As it is.
        shown: All that is answered of it: another language, another moment, other permissions give other tags. None: only
            whether the task has changed counts.
    """
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
    """
    Which state of a task the one who asks has seen, as ``If-Match`` says.

    Args:
        request: Without it, whatever the state is; ``*``: whichever, as long as it is there.
        pk: Of the task.
        now: Its ``seq`` as it was read: if several tags are given, which of them counts.

    Raises:
        ValidationError: for what is no tag.
    """
    given = request.headers.get("If-Match", "*").strip()
    if not re.fullmatch(TAGS, given):
        raise ValidationError({"If-Match": _("Give a task's ETag, or its seq in quotation marks.")})
    if given == "*":
        return None
    seen = [int(found[1]) for part in given.split(",") if (found := _TAG.fullmatch(part.strip()))]
    return {pk: now if now in seen else next(iter(seen), -1)}
