"""Call a handler: its guards first, in the entity's language and time zone, and what it returns as an outcome."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone, translation

from timeline import reasons
from timeline.engine.attempting import Attempt
from timeline.engine.stepping import Steps
from timeline.exceptions import Rest
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models.facts import language_of, zone_of
from timeline.operations.current import now_running
from timeline.payloads import check_json
from timeline.store.stepping import steps_of
from timeline.store.writing import Write

# What rests looks this much later whether the code fits again.
LOOKS_AGAIN: Final = timedelta(hours=1)

_DONE = Reason(ReasonCode.DONE)
_IN_SHADOW = reasons.IN_SHADOW()


def call(attempt: Attempt) -> Write:
    """
    Ask the guards, enter the handler unless the timeline is in shadow, and take its result.

    What the handler makes of this thread's context (language, time zone, context variables) ends with it.

    Raises:
        Exception: whatever the host's code raises.
    """
    return copy_context().run(_call, attempt)


def _call(attempt: Attempt) -> Write:
    enter(attempt)
    refused = refusal(attempt)
    if refused is not None:
        return refused
    try:
        return returned(attempt, handler_of(attempt)())
    except Rest as rest:
        return rested(attempt, rest.reason)


@contextmanager
def in_place_of_the_site() -> Iterator[None]:
    """Let zone and language be the site's, and what is changed of them end with the block."""
    with timezone.override(timezone.get_default_timezone()), translation.override(translation.get_language()):
        yield


def enter(attempt: Attempt) -> None:
    """Mark the task as being run, and let zone and language be the entity's where its timeline says so, in this context."""
    now_running(attempt.task.id)
    if attempt.definition.cls.time_zone:
        timezone.activate(zone_of(attempt.definition, attempt.entity))
    if language := language_of(attempt.definition, attempt.entity):
        translation.activate(language)


def refusal(attempt: Attempt) -> Write | None:
    """Tell how an attempt ends whose handler is not to be entered: a guard says no, or the timeline is in shadow."""
    if attempt.has_records:  # Half of it is done: it goes on, whatever a guard says by now.
        return rested(attempt, reasons.STEPS_GONE()) if _has_lost_its_steps(attempt) else None
    for option, guard in attempt.declared.function_guards:
        if bool(guard(attempt.entity)) is (option == "unless"):
            return Write(task=attempt.task, triggers=(Trigger.CANCEL,), reason=_guard_reason(option, guard))
    if attempt.definition.shadow:
        return Write(task=attempt.task, triggers=(Trigger.COMPLETE,), reason=_IN_SHADOW)
    return None


def _has_lost_its_steps(attempt: Attempt) -> bool:
    """Whether the code has no steps any more, and nobody has decided that what was done counts all the same."""
    if attempt.definition.steps:
        return False
    records = steps_of(attempt.idempotency_key, using=_alias_of(attempt))
    return any(record.code for record in records.values())


def _alias_of(attempt: Attempt) -> str:
    return attempt.task._state.db or DEFAULT_DB_ALIAS


def handler_of(attempt: Attempt) -> Callable[[], Any]:
    """The handler, bound to what it is told and to its entity; called with nothing more."""
    context = attempt.definition.cls(**attempt.told())
    if attempt.definition.steps:
        context._step_runner = attempt.steps = Steps(attempt, _alias_of(attempt))
    method = getattr(context, attempt.declared.name)
    return partial(method, attempt.entity) if attempt.definition.label else method


def returned(attempt: Attempt, result: object) -> Write:
    """
    Take what a handler returned for its result.

    Raises:
        NotPlainJSON, PayloadTooLarge: naming ``result``.
        Rest: if steps are done that the handler, whose code has changed, did not come by.
    """
    if attempt.steps is not None:
        attempt.steps.see_end()
    if result is None:
        return Write(task=attempt.task, triggers=(Trigger.COMPLETE,), reason=_DONE)
    check_json("result", result)
    text = json.dumps(result, ensure_ascii=False)
    return Write(task=attempt.task, triggers=(Trigger.COMPLETE,), reason=_DONE, result=text)


def rested(attempt: Attempt, reason: Reason) -> Write:
    """An attempt that waits for somebody's decision, or for other code: no failure. It looks again from time to time."""
    return Write(task=attempt.task, triggers=(Trigger.RETRY,), reason=reason, scheduled_at=attempt.now + LOOKS_AGAIN)


def _guard_reason(option: str, guard: object) -> Reason:
    return Reason(ReasonCode.GUARD, f"{option} {getattr(guard, '__name__', type(guard).__name__)}")
