"""What belongs to a user: the tasks of entities that a timeline declares as theirs, by entity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Model

from timeline.admin import entities
from timeline.admin.entities import Item, as_foreseen, as_items, in_order
from timeline.admin.looking import sees
from timeline.admin.naming import Named, load_to_name, named
from timeline.admin.readers import Reader
from timeline.lifecycle import FINAL, OPEN
from timeline.models import EntityRef, TimelineRun, family_of, ref_as
from timeline.models.entities import path_to
from timeline.policy import TimelinePolicy
from timeline.reading.recalling import keep_said, with_said
from timeline.registry import registry
from timeline.store.earliest import First, first_of_kinds

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import User
    from timeline.reading.foreseeing import Outlook


class Group(NamedTuple):
    """What one entity has ahead, the soonest first, and behind it, the latest first."""

    entity: Named
    ahead: list[Item]
    past: list[Item]


class Belongings(NamedTuple):
    """
    What belongs to a user, as it was read.

    Args:
        items: Tasks, as they are shown.
        is_cut: Whether there are more.
        entities: What they are about, as far as it is to be named.
        runs: Open ones of these tasks, of which the user may see what is foreseen.
    """

    items: list[Item]
    is_cut: bool
    entities: Mapping[EntityRef, Model]
    runs: list[TimelineRun]


def may_own(entity: Model | None, reader: Reader, using: str) -> tuple[Model | None, set[str]]:
    """The account that an entity is, and labels of what may be somebody's and is shown to who looks; none: it is no account."""
    owner = _as_user(entity, using)
    return owner, set() if owner is None else _kinds(reader.policy, reader.user, owner)


def belongings_of(
    owner: Model | None, labels: set[str], task_keys: Iterable[str], visible: ScheduledTaskQuerySet, reader: Reader
) -> Belongings:
    """
    Read what belongs to a user, in as many queries for one thing as for a thousand.

    Args:
        owner: The account; None: there is none.
        labels: Of the models that are looked at.
        task_keys: Of the tasks there are.
        visible: The tasks that the one who looks may see.
        reader: Who looks.
    """
    if owner is None or not labels:
        return Belongings([], False, {}, [])
    using, policy, user = visible.db, reader.policy, reader.user
    tasks = policy.concerning(visible, owner).filter(entity_label__in=labels)
    for name in _names(owner):  # Which the page shows by itself.
        tasks = tasks.exclude(entity_label=name.label, entity_id=name.id)
    sides = [First(FINAL, latest=True), First(OPEN)]
    past, ahead = first_of_kinds(tasks, _keys_about(labels, task_keys), sides, entities.MAX_SHOWN + 1, also=with_said)
    keep_said([*past, *ahead])
    items, is_cut = as_items(past, ahead, reader)
    shown = [item.task for item in items if item.task is not None]
    runs = {task.run.pk: task.run for task in shown if task.is_open and task.run_id and task.run and task.run.is_open}
    # Who is shown a task by our own rules is shown what its run brings. Those of a host's are asked.
    ours = all(getattr(type(policy), name) is getattr(TimelinePolicy, name) for name in ("visible", "sees_timeline"))
    if not ours:
        policy.look_up(user, [run.entity_ref for run in runs.values()], using=using)
    seen = [run for run in runs.values() if ours or sees(policy, user, run.timeline, run.entity_ref, using)]
    named = load_to_name({task.entity_ref: None for task in shown}, using=using)
    return Belongings(items, is_cut, named, seen)


def told_belongings(
    theirs: Belongings, outlooks: Iterable[tuple[TimelineRun, Outlook]], *, now: datetime, site: str
) -> dict[str, Any]:
    """
    Put together what belongs to a user.

    Args:
        theirs: As it was read.
        outlooks: What is foreseen of their runs.
        now: Story time.
        site: Name of the admin site, for addresses.
    """
    found: dict[EntityRef, list[Item]] = defaultdict(list)
    for item in theirs.items:
        if item.task is not None:
            found[item.task.entity_ref].append(item)
    for run, outlook in outlooks:
        found[run.entity_ref].append(as_foreseen(outlook))
    groups = _sorted(
        [_group(named(ref, theirs.entities.get(ref), site), about, now) for ref, about in found.items()], now
    )
    items = [
        item._replace(lane=f"{group.entity.name}: {item.called.title or item.key}", group=number)
        for number, group in enumerate(groups, 1)
        for item in (*group.ahead, *group.past)
    ]
    return {"groups": groups, "groups_cut": theirs.is_cut, "theirs": items}


def _as_user(entity: Model | None, using: str) -> Model | None:
    """The account that an entity is, by the model of accounts or by a parent of it."""
    model = get_user_model()
    if entity is None or isinstance(entity, model):
        return entity
    if entity.__class__ not in family_of(model):
        return None
    path = path_to(model, entity.__class__)
    return model._base_manager.using(using).filter(**{path: entity.pk}).first()


def _names(owner: Model) -> list[EntityRef]:
    return [ref_as(owner, model) for model in family_of(owner.__class__)]


def _kinds(policy: TimelinePolicy, user: User, owner: Model) -> set[str]:
    """Labels of what may be somebody's; for whoever looks at what is not their own, of models they may view."""
    labels = {known.label for known in registry if known.cls.owner}
    return labels if owner == user else {label for label in labels if policy.sees_model(user, label)}


def _keys_about(labels: set[str], task_keys: Iterable[str]) -> list[str]:
    """Keys of the tasks that there are of timelines about these models, declared still or not."""
    timelines = {known.name for known in registry if known.label in labels}
    return [key for key in task_keys if key.partition(".")[0] in timelines]


def _group(entity: Named, items: Sequence[Item], now: datetime) -> Group:
    ended = [item for item in items if item.state in FINAL]
    return Group(entity, in_order((item for item in items if item.state not in FINAL), now), in_order(ended, now)[::-1])


def _sorted(groups: Sequence[Group], now: datetime) -> list[Group]:
    """What has something ahead comes first, the soonest first; the rest by what happened last."""
    ahead = sorted((it for it in groups if it.ahead), key=lambda it: (it.ahead[0].at is None, it.ahead[0].at or now))
    rest = sorted((it for it in groups if not it.ahead), key=lambda it: it.past[0].at or now, reverse=True)
    return [*ahead, *rest]
