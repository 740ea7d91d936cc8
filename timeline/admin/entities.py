"""The page of an entity: its past, now and future on one axis, and in a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from timeline.admin.drawing import drawing
from timeline.lifecycle import FINAL, ReasonCode, State
from timeline.models import EntityRef, TimelineRun, model_of
from timeline.models.entities import load_entities
from timeline.reading.explaining import why
from timeline.reading.foreseeing import foreseen
from timeline.reading.masking import masked
from timeline.reading.retelling import retold
from timeline.registry import registry

if TYPE_CHECKING:
    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import TimelinePolicy, User

MOST = 100  # So many are shown on each side of now, the nearest.
FORESEEN = "foreseen"


class Item(NamedTuple):
    """
    One thing on the axis.

    Args:
        key: Of the task.
        at: When it ended, is due or is expected; None: nobody can say.
        state: A state, or ``foreseen``.
        label: The state in words.
        why: Why it is so; may be empty.
        task: None: it has no row yet.
    """

    key: str
    at: datetime | None
    state: str
    label: str
    why: str
    task: ScheduledTask | None = None


def may_look(ref: EntityRef, visible: ScheduledTaskQuerySet, policy: TimelinePolicy, user: User) -> bool:
    """Whether there is a page of this entity for the user: they see a task of it, or would, and it is or was there."""
    if visible.for_entity(ref).exists():
        return True
    seen = [known for known in registry if known.label == ref.label and sees(policy, user, known.name, ref, visible.db)]
    return bool(seen) and (not ref.label or _is_there(ref, visible.db))


def _is_there(ref: EntityRef, using: str) -> bool:
    """Whether the database has it. It is asked for keys only that it could have: a number may be too large for it."""
    model = model_of(ref.label)
    try:
        if model is not None:
            model._meta.pk.run_validators(model._meta.pk.to_python(ref.id))
    except ValidationError:
        return False
    there = load_entities([ref], using=using)
    return bool(there or there.unreadable)


def sees(policy: TimelinePolicy, user: User, timeline: str, ref: EntityRef, using: str) -> bool:
    """Whether the user may see what a timeline, perhaps one that is declared no more, has for the entity."""
    known = {definition.name for definition in registry}
    return timeline in known and policy.sees_timeline(user, timeline, ref, using=using)


def timeline_of(
    ref: EntityRef,
    visible: ScheduledTaskQuerySet,
    policy: TimelinePolicy,
    user: User,
    *,
    now: datetime,
    zone: tzinfo,
) -> dict[str, Any]:
    """
    Put together what the page of an entity shows.

    Args:
        ref: Names it; it may be deleted.
        visible: The tasks that the user may see.
        policy, user: Who looks, and what they may see.
        now: Story time.
        zone: The site's.
    """
    items, is_cut = _items(ref, visible, policy.sees_payload(user))
    seen = {known.name for known in registry if sees(policy, user, known.name, ref, visible.db)}
    items += _foreseen(ref, seen, now=now, using=visible.db)
    later = [item for item in items if item.at is None or item.state not in FINAL]
    runs = TimelineRun.objects.using(visible.db).for_entity(ref).filter(timeline__in=seen)
    return {
        "ahead": _in_order(later, now),
        "past": _in_order((item for item in items if item.state in FINAL), now)[::-1],
        "drawing": drawing([item for item in items if item.at is not None], now=now, zone=zone),
        "runs": [(run, retold(ReasonCode.EXIT, run.end_reason)) for run in runs.order_by("-started_at", "pk")[:20]],
        "is_cut": is_cut,
        "most": MOST,
        "signs": [*((state.value, state.label) for state in State), (FORESEEN, _("foreseen"))],
    }


def _items(ref: EntityRef, visible: ScheduledTaskQuerySet, payload: bool) -> tuple[list[Item], bool]:
    """What has rows, and whether that is not all of it."""
    tasks = visible.for_entity(ref)
    past = list(tasks.final().order_by("-scheduled_at", "-pk")[: MOST + 1])
    ahead = list(tasks.open().in_order()[: MOST + 1])
    shown = [*past[:MOST][::-1], *ahead[:MOST]]
    return [_row(task, payload) for task in shown], len(past) > MOST or len(ahead) > MOST


def _foreseen(ref: EntityRef, seen: Collection[str], *, now: datetime, using: str) -> list[Item]:
    return [
        Item(outlook.task_key, outlook.expected_at, FORESEEN, _("foreseen"), outlook.why)
        for outlook in foreseen(entity=ref, now=now, using=using)
        if outlook.task_key.partition(".")[0] in seen
    ]


def _row(task: ScheduledTask, payload: bool) -> Item:
    said = why(task if payload else masked(task))
    return Item(
        task.task_key, task.finished_at or task.scheduled_at, task.state, str(State(task.state).label), said, task
    )


def _in_order(items: Iterable[Item], now: datetime) -> list[Item]:
    """By time; what is foreseen at the same moment as its predecessor comes after it, and some day is last."""
    return sorted(items, key=lambda item: (item.at is None, item.at or now, item.state == FORESEEN))
