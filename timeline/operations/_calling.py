"""Call a handler: its guards first, in the entity's language and time zone, and what it returns as an outcome."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.utils import timezone, translation

from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models.facts import language_of, zone_of
from timeline.operations._attempting import Attempt
from timeline.operations._current import while_running
from timeline.operations._transition import Write
from timeline.payloads import check_json

_DONE = Reason(ReasonCode.DONE)
_IN_SHADOW = Reason(ReasonCode.SHADOW, "would have run")


def call(attempt: Attempt) -> Write:
    """
    Ask the guards, enter the handler unless the timeline is in shadow, and take its result.

    Raises:
        Exception: whatever the host's code raises.
    """
    with in_place_of(attempt):
        refused = refusal(attempt)
        return refused if refused is not None else returned(attempt, handler_of(attempt)())


@contextmanager
def in_place_of(attempt: Attempt) -> Iterator[None]:
    """Mark the task as being run, and let zone and language be the entity's, where its timeline says so."""
    language = language_of(attempt.definition, attempt.entity) or translation.get_language()
    zone = zone_of(attempt.definition, attempt.entity)
    with while_running(attempt.task.pk), timezone.override(zone), translation.override(language):
        yield


def refusal(attempt: Attempt) -> Write | None:
    """Tell how an attempt ends whose handler is not to be entered: a guard says no, or the timeline is in shadow."""
    options = attempt.declared.options
    for option, wanted in (("only_if", True), ("unless", False)):
        guard = getattr(options, option)
        if callable(guard) and bool(guard(attempt.entity)) is not wanted:
            return Write(task=attempt.task, triggers=(Trigger.CANCEL,), reason=_guard_reason(option, guard))
    if attempt.definition.shadow:
        return Write(task=attempt.task, triggers=(Trigger.COMPLETE,), reason=_IN_SHADOW)
    return None


def handler_of(attempt: Attempt) -> Any:
    """The handler, bound to what it is told and to its entity; called with nothing more."""
    context = attempt.context()
    given = {name: getattr(context, name) for name in context.__slots__}
    method = getattr(attempt.definition.cls(**given), attempt.declared.name)
    if not attempt.definition.label:
        return method
    return lambda: method(attempt.entity)


def returned(attempt: Attempt, result: object) -> Write:
    """
    Take what a handler returned for its result.

    Raises:
        NotPlainJSON, PayloadTooLarge: naming ``result``.
    """
    check_json("result", result)
    text = None if result is None else json.dumps(result, ensure_ascii=False)
    return Write(task=attempt.task, triggers=(Trigger.COMPLETE,), reason=_DONE, result=text)


def _guard_reason(option: str, guard: object) -> Reason:
    return Reason(ReasonCode.GUARD, f"{option} {getattr(guard, '__name__', type(guard).__name__)}")
