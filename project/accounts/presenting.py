"""What “my timeline” shows: rows and foreseen follow-ups, in words a customer reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db import DEFAULT_DB_ALIAS
from django.utils.formats import date_format

from project.accounts.models import User
from timeline.features.holds.reading import HeldTask, waits_of
from timeline.lifecycle import FINAL, ReasonCode, State
from timeline.models import ScheduledTask, ref_of
from timeline.reading.explanation import why
from timeline.reading.masks import masked, without_people
from timeline.reading.outlook import Outlook, foreseen

TITLES: Final = {
    "trial.remind": "We remind you that the trial ends soon",
    "trial.expire": "The trial ends; the chat is switched off",
    "trial.tell_expired": "We tell you that the trial has ended",
    "trial.check_script_usage": "We look whether your website still calls the chat",
}

_GUARDS: Final = {
    "unless has_payment": "payment is configured",
    "unless is_active": "the account is active again",
}

# What is told of an end that has a reason of staff's own, or an error: neither is for customers.
_NOTES: Final[Mapping[tuple[str, str], str]] = {
    (State.CANCELLED, ReasonCode.OPERATOR): "Called off by our support.",
    (State.RETRYABLE, ReasonCode.ERROR): "It did not work; we try again.",
    (State.DISCARDED, ReasonCode.ERROR): "It did not work; our support looks into it.",
}

_EXITS: Final = {"paid": "Not needed: payment is configured.", "closed": "Not needed: the trial was closed."}


@dataclass(frozen=True, slots=True)
class Item:
    """
    One line of the page.

    Args:
        title: What it is.
        at: When it ended, is due, or is expected.
        state: A state, or ``foreseen``.
        note: Why it is so; may be empty.
        is_held: Whether it waits though it is due, or will be.
    """

    title: str
    at: datetime | None
    state: str
    note: str
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """
    All of it.

    Args:
        status: One word for the account: trial, paid, inactive, closed.
        days_left: Whole days of trial left, where that is the status.
        ahead: What is to come, the latest first, so that now is below it.
        past: What has ended, the latest first.
    """

    status: str
    days_left: int
    ahead: list[Item]
    past: list[Item]


def present(user: User, *, now: datetime) -> Page:
    """Put a customer's page together."""
    tasks = list(ScheduledTask.objects.for_entity(user).in_order())
    outlooks = [(item, _as_task(user, item, now)) for item in foreseen(entity=user, now=now, using=DEFAULT_DB_ALIAS)]
    open_ones = [task for task in tasks if task.state not in FINAL]
    waits = waits_of([*open_ones, *(task for _item, task in outlooks)], using=DEFAULT_DB_ALIAS)
    ahead = [_waiting(_row(task), waits.get(task.pk)) for task in open_ones]
    for item, task in outlooks:
        note = f"Follows {item.why.replace('expire completes', 'the trial has ended')}, if it does."
        row = Item(_title(item.task_key), item.expected_at, "foreseen", note)
        ahead.append(_waiting(row, waits.get(task.pk)))
    # What is foreseen at the same moment as its predecessor comes after it.
    ahead.sort(key=lambda item: (item.at is None, item.at or now, item.state == "foreseen"), reverse=True)
    past = sorted((_row(task) for task in tasks if task.state in FINAL), key=lambda item: item.at or now)
    return Page(_status(user), max((user.trial_ends_at - now).days, 0), ahead, past[::-1])


def _as_task(user: User, item: Outlook, now: datetime) -> ScheduledTask:
    """What is foreseen, as the row that it will have: holds are asked about rows."""
    ref = ref_of(user)
    at = item.expected_at or now
    return ScheduledTask(
        task_key=item.task_key, entity_label=ref.label, entity_id=ref.id, scheduled_at=at, created_at=now
    )


def _waiting(item: Item, held: HeldTask | None) -> Item:
    """Say of what is on hold until when it waits. Who decided that, and why, is for staff."""
    if held is None or item.state == State.ACTIVE:
        return item
    if held.is_called_off:
        note = "It waits, and will not be done."
    elif held.until is None:
        note = "It waits until our support lets it go on."
    else:
        note = f"It waits until {date_format(held.until, 'j F, H:i')} UTC."
    return replace(item, at=held.comes_at or item.at, note=f"{note} {item.note}".strip(), is_held=True)


def _status(user: User) -> str:
    if user.payment_configured_at is not None:
        return "paid"
    if user.trial_closed_at is not None:
        return "closed"
    return "trial" if user.is_active else "inactive"


def _row(task: ScheduledTask) -> Item:
    return Item(_title(task.task_key), task.finished_at or task.scheduled_at, task.state, _note(task))


def _note(task: ScheduledTask) -> str:
    if task.reason_code == ReasonCode.EXIT:
        return _EXITS.get(task.reason, "Not needed any more.")
    if task.reason_code == ReasonCode.GUARD:
        return f"Not done: {_GUARDS.get(task.reason, task.reason)}."
    if task.reason_code == ReasonCode.MOVED:
        by_itself = without_people(task).reason  # Nothing is left where a person moved it.
        return "Moved, because the trial's end moved." if by_itself else "Moved by our support."
    if task.state == State.COMPLETED and isinstance(task.result, dict) and "in_use" in task.result:
        return "It still calls; we told you again." if task.result.get("in_use") else "It does not call any more."
    if note := _NOTES.get((task.state, task.reason_code)):
        return note
    return why(without_people(masked(task)))  # What staff wrote, and what an error said, is not for customers.


def _title(task_key: str) -> str:
    return TITLES.get(task_key, task_key)
