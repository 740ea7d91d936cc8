"""What the page of an entity is about, and who may look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.contrib.auth import get_user_model

from timeline.models import EntityRef, family_of
from timeline.models.entities import Entities, by_model, label_of
from timeline.models.families import relatives
from timeline.models.kin import named_as, names_of
from timeline.registry import registry

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import TimelinePolicy, User


class About(NamedTuple):
    """
    What a page is about.

    Args:
        ref: Names the entity; it may be deleted.
        there: What was read of it.
        timelines: Names of those that may show something on its page: about it, or, of a user, about what is theirs.
    """

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
    """Whether there is a page of this entity for the user: they see a task of it, or would, and it is or was there."""
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
    """Whether it has a row as another model of its family that a timeline is about."""
    there = _read(ref, using) if registry.knows(ref.label) else Entities()
    return bool(there or there.unreadable)


def _read(ref: EntityRef, using: str) -> Entities:
    """Read one entity by ``=``: a key that is too large a number for its column finds none so, and is refused in a list."""

    def rows(model: type[Model], keys: list[Any]) -> QuerySet[Model]:
        everything = model._base_manager.using(using)
        return everything.filter(pk=keys[0]) if keys else everything.none()

    return by_model([ref], rows, using=using)


def sees(policy: TimelinePolicy, user: User, timeline: str, ref: EntityRef, using: str) -> bool:
    """
    Whether the user may see what a timeline, perhaps one that is declared no more, has for the entity: as the model of its
    family that the timeline is about.
    """
    label = next((known.label for known in registry if known.name == timeline), None)
    return label is not None and policy.sees_timeline(user, timeline, named_as(ref, label), using=using)
