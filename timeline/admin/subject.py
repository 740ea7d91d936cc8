"""What the page of an entity is about, and who may look at it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from django.contrib.auth import get_user_model

from timeline.features.waits.reading import approval_under_way
from timeline.lifecycle import ReasonCode
from timeline.models import EntityRef, LogEntry, ScheduledTask, TimelineRun, family_of
from timeline.models.entities import Entities, by_model, label_of, relatives
from timeline.models.kin import named_as, names_of
from timeline.policy import APPROVALS
from timeline.reading.masks import is_ended_by_a_person, masked, without_people, without_people_entry
from timeline.reading.reason_texts import retold_end
from timeline.registry import registry

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import Action, TimelinePolicy, User


class About(NamedTuple):
    """What a page is about: the entity, perhaps deleted, what was read of it, and timelines that may show something there."""

    ref: EntityRef
    there: Entities
    timelines: list[str]

    @property
    def entity(self) -> Model | None:
        """The entity; None: it is not there, or cannot be read."""
        return self.there.get(self.ref)

    @property
    def is_gone(self) -> bool:
        """Whether the database has it no more. The system is always there."""
        return bool(self.ref.label) and self.entity is None and not self.there.unreadable


def look_at(ref: EntityRef, *, using: str) -> About:
    """Read what a page is about, once for all that the page says of it."""
    return About(ref, _read(ref, using), concerned_with(ref, using=using))


def may_look(about: About, visible: ScheduledTaskQuerySet, policy: TimelinePolicy, user: User) -> bool:
    """Whether the user gets a page of this entity: they see a task of it, or would see one and it is not gone."""
    if not policy.may_see(user, names_of(about.ref, using=visible.db), using=visible.db):
        return False
    seen = any(sees(policy, user, name, about.ref, visible.db) for name in about.timelines)
    return (seen and not about.is_gone) or visible.for_entity(about.ref).exists()


def concerned_with(ref: EntityRef, *, using: str) -> list[str]:
    """Names of timelines that may show something on the page of an entity: about it, or, of a user, about what is theirs."""
    labels = {name.label for name in names_of(ref, using=using) if name == ref or _is_also(name, using)}
    return [known.name for known in registry if known.label in labels or (known.cls.owner and ref.label in accounts())]


def accounts() -> set[str]:
    """Labels of the models that users are rows of: what belongs to them is shown with them."""
    user = get_user_model()
    return {label_of(model) for model in (*family_of(user), *relatives(label_of(user)))}


def _is_also(ref: EntityRef, using: str) -> bool:
    there = _read(ref, using) if registry.knows(ref.label) else Entities()
    return bool(there or there.unreadable)


def _read(ref: EntityRef, using: str) -> Entities:
    """Read by ``=``: a key that is too large for its column finds nothing so, and is refused in a list."""

    def rows(model: type[Model], keys: list[Any]) -> QuerySet[Model]:
        everything = model._base_manager.using(using)
        return everything.filter(pk=keys[0]) if keys else everything.none()

    return by_model([ref], rows, using=using)


def sees(policy: TimelinePolicy, user: User, timeline: str, ref: EntityRef, using: str) -> bool:
    """Whether the user may see what a timeline has for the entity, as the model that it is about; not declared: False."""
    label = next((known.label for known in registry if known.name == timeline), None)
    return label is not None and policy.sees_timeline(user, timeline, named_as(ref, label), using=using)


def sees_entity(policy: TimelinePolicy, user: User, ref: EntityRef, using: str) -> bool:
    """Whether the user may see what a timeline about the entity has for it, and so by what name it goes."""
    return any(policy.sees_timeline(user, one.name, ref, using=using) for one in registry if one.label == ref.label)


class Reader:
    """Reads tasks as far as the user may."""

    def __init__(self, policy: TimelinePolicy, user: User) -> None:
        self.policy = policy
        self.user = user
        self.payload = policy.sees_payload(user)

    def reads_people(self, task: ScheduledTask) -> bool:
        """Whether they read who decided about it, and what they wrote."""
        return self.policy.sees_decisions(self.user, task)

    def answers(self, task: ScheduledTask) -> list[Action]:
        """What they may say to what a task asks for now: yes and no, or nothing."""
        if approval_under_way(task) is None:
            return []
        return [action for action in self.policy.actions(self.user, task) if action in APPROVALS]

    def reads_people_of(self, run: TimelineRun) -> bool:
        """Whether they read who decided about a run."""
        return self.reads_people(_some_task_of(run))

    def shown(self, task: ScheduledTask) -> ScheduledTask:
        """The task without what they may not read. Never save it."""
        shown = task if self.payload else masked(task)
        return shown if self.reads_people(task) else without_people(shown)

    def hushed(self, log: Iterable[LogEntry], task: ScheduledTask) -> list[LogEntry]:
        """The log of a task without who decided and what they wrote, where they may not read that. Errors stay."""
        return list(log) if self.reads_people(task) else [without_people_entry(entry, task) for entry in log]

    def end_of(self, run: TimelineRun) -> str:
        """Why a run ended, in words; empty: it has not."""
        if is_ended_by_a_person(run) and not self.reads_people_of(run):
            return str(ReasonCode.EXIT.label)
        return retold_end(run)


def _some_task_of(run: TimelineRun) -> ScheduledTask:
    """What a policy can be asked about: it decides about tasks, of which a run has any number."""
    return ScheduledTask(run=run, task_key=f"{run.timeline}.", entity_label=run.entity_label, entity_id=run.entity_id)
