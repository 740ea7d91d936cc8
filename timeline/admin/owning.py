"""What belongs to a user: the tasks of entities that a timeline declares as theirs, by entity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Model

from timeline.admin.entities import Item, as_foreseen, in_order, nearest_of_many
from timeline.admin.looking import sees
from timeline.admin.naming import Named, load_to_name, named
from timeline.admin.readers import Reader
from timeline.lifecycle import FINAL
from timeline.models import EntityRef, TimelineRun, family_of, ref_as
from timeline.models.entities import path_to
from timeline.reading.foreseeing import foreseen_of
from timeline.registry import registry
from timeline.store.kinds import task_keys_there

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import TimelinePolicy, User


class Group(NamedTuple):
    """What one entity has ahead, the soonest first, and behind it, the latest first."""

    entity: Named
    ahead: list[Item]
    past: list[Item]


def belongings_of(
    entity: Model | None, visible: ScheduledTaskQuerySet, reader: Reader, *, now: datetime, site: str
) -> dict[str, Any]:
    """
    Put together what belongs to an entity that is a user, in as many queries for one thing as for a thousand.

    Args:
        entity: Whose page it is; None: not there any more.
        visible: The tasks that the one who looks may see.
        reader: Who looks.
        now: Story time.
        site: Name of the admin site, for addresses.
    """
    using, policy, user = visible.db, reader.policy, reader.user
    owner = _as_user(entity, using)
    labels = set() if owner is None else _kinds(policy, user, owner)
    if owner is None or not labels:
        return {"groups": [], "groups_cut": False, "theirs": []}
    tasks = policy.concerning(visible, owner).filter(entity_label__in=labels)
    for name in _names(owner):  # Which the page shows by itself.
        tasks = tasks.exclude(entity_label=name.label, entity_id=name.id)
    items, is_cut = nearest_of_many(tasks, _keys_about(labels, using), reader)
    found: dict[EntityRef, list[Item]] = defaultdict(list)
    for item in items:
        if item.task is not None:
            found[item.task.entity_ref].append(item)
    entities = load_to_name(found, using=using)
    for ref, item in _foreseen(items, entities, reader, now=now, using=using):
        found[ref].append(item)
    groups = [_group(named(ref, entities.get(ref), site), about, now) for ref, about in found.items()]
    groups = _sorted(groups, now)
    theirs = [
        item._replace(lane=f"{group.entity.name}: {item.called.title or item.key}", group=number)
        for number, group in enumerate(groups, 1)
        for item in (*group.ahead, *group.past)
    ]
    return {"groups": groups, "groups_cut": is_cut, "theirs": theirs}


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


def _keys_about(labels: set[str], using: str) -> list[str]:
    """Keys of the tasks that there are of timelines about these models, declared still or not."""
    timelines = {known.name for known in registry if known.label in labels}
    return [key for key in task_keys_there(using) if key.partition(".")[0] in timelines]


def _foreseen(
    items: Sequence[Item], entities: Mapping[EntityRef, Model], reader: Reader, *, now: datetime, using: str
) -> list[tuple[EntityRef, Item]]:
    """What follows on the tasks that are shown, and that the user would see."""
    keys = {item.task.run_id for item in items if item.task and item.task.is_open and item.task.run_id}
    runs = [
        run
        for run in TimelineRun.objects.using(using).open().filter(pk__in=keys)
        if sees(reader.policy, reader.user, run.timeline, run.entity_ref, using)
    ]
    outlooks = foreseen_of(runs, now=now, using=using, entities=entities)
    return [(run.entity_ref, as_foreseen(outlook)) for run, outlook in outlooks]


def _group(entity: Named, items: Sequence[Item], now: datetime) -> Group:
    ended = [item for item in items if item.state in FINAL]
    return Group(entity, in_order((item for item in items if item.state not in FINAL), now), in_order(ended, now)[::-1])


def _sorted(groups: Sequence[Group], now: datetime) -> list[Group]:
    """What has something ahead comes first, the soonest first; the rest by what happened last."""
    ahead = sorted((it for it in groups if it.ahead), key=lambda it: (it.ahead[0].at is None, it.ahead[0].at or now))
    rest = sorted((it for it in groups if not it.ahead), key=lambda it: it.past[0].at or now, reverse=True)
    return [*ahead, *rest]
