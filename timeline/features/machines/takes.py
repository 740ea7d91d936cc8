"""Take what waits for people, and hand it over: others see who has it. It hinders nobody from answering."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import IntegrityError
from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import AlreadyTaken, InvalidInput
from timeline.features.machines.people import Asking, first_due
from timeline.features.waits.reading import Undecided
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.machine_rows import Taking
from timeline.policy import Action
from timeline.store.transactions import atomic

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import TimelinePolicy, User


MOST: Final = 200  # Of what somebody has taken, the last are looked at.


class Item(NamedTuple):
    """What can be taken: a run in its present state, or a task; ``until``: the deadline, at which it is nobody's any more."""

    id: UUID
    visit: int
    until: datetime | None
    row: TimelineRun | ScheduledTask

    def is_held(self, taking: Taking, now: datetime) -> bool:
        """Whether what was taken is still somebody's."""
        return self.until is None or now < self.until or taking.at >= self.until


def item_of(each: Asking | Undecided) -> Item:
    """What waits as something that can be taken."""
    if isinstance(each, Asking):
        return Item(each.run.pk, each.run.moves, each.due_at, each.run)
    return Item(each.task.pk, 0, each.until, each.task)


def find_item(key: UUID, *, tasks: ScheduledTaskQuerySet) -> Item | None:
    """The run or the task of this id, among ``tasks`` that the reader may see; None: there is none."""
    run = TimelineRun.objects.using(tasks.db).open().filter(pk=key, state__gt="").first()
    if run is not None:
        return Item(run.pk, run.moves, first_due(run), run)
    task = tasks.select_related("run").filter(pk=key).first()
    return Item(task.pk, 0, task.nominal_at, task) if task is not None else None


def may_answer(policy: TimelinePolicy, user: User, item: Item, *, using: str) -> bool:
    """Whether a user may say what it waits for; who may, may take it, and hand it over."""
    if isinstance(item.row, TimelineRun):
        return bool(policy.asked_of(user, item.row, using=using))
    return Action.APPROVE in policy.actions(user, item.row)


def take(item: Item, *, holder: str, now: datetime, using: str) -> Taking:
    """
    Take it. Taken twice by the same person, it is taken once.

    Raises:
        AlreadyTaken: if somebody else has it.
    """
    last = _last(item, using)
    if last is not None and item.is_held(last, now):
        if last.holder == holder:
            return last
        raise AlreadyTaken(item.id, last.holder, last.at)
    return _write(item, last, holder, holder, now, using)


def hand_over(item: Item, *, to: str, policy: TimelinePolicy, actor: str, now: datetime, using: str) -> Taking:
    """
    Give it to somebody, whoever has it.

    Args:
        to: Name of a user, as they log in.

    Raises:
        InvalidInput: if there is no such user, or if they may not answer; both read alike.
        AlreadyTaken: if somebody else took it at the same moment.
    """
    users = get_user_model()
    # Accounts are where the site has them, whichever database the tasks are in.
    other: Any = users._default_manager.filter(**{users.USERNAME_FIELD: to}).first()
    if other is None or not may_answer(policy, other, item, using=using):
        remedy = _("Name somebody who may.")
        raise InvalidInput("to", _("%(who)s is nobody who may answer this."), remedy, who=to)
    last = _last(item, using)
    if last is not None and last.holder == to and item.is_held(last, now):
        return last
    return _write(item, last, to, actor, now, using)


def takings_asked(items: Iterable[Item], *, using: str) -> QuerySet[Taking]:
    """Ask who has these; for ``takings_read``."""
    return Taking.objects.using(using).filter(item__in=[item.id for item in items])


def takings_read(items: Iterable[Item], read: Iterable[Taking], now: datetime) -> dict[UUID, Taking]:
    """Who has these now: id → the last taking, where somebody has it."""
    known = {item.id: item for item in items}
    in_order = sorted(read, key=lambda taking: taking.seq)
    last = {taking.item: taking for taking in in_order if taking.visit == known[taking.item].visit}
    return {key: taking for key, taking in last.items() if known[key].is_held(taking, now)}


def taken_by(holder: str, *, using: str) -> list[UUID]:
    """What somebody has taken last, whether it still waits or not: up to ``MOST`` ids."""
    takings = Taking.objects.using(using)
    last = takings.filter(item=OuterRef("item"), visit=OuterRef("visit")).order_by("-seq").values("holder")[:1]
    found = takings.filter(holder=holder).order_by("-pk").annotate(has_it=Subquery(last))[:MOST]
    return [taking.item for taking in found if taking.has_it == holder]


def _last(item: Item, using: str) -> Taking | None:
    return Taking.objects.using(using).filter(item=item.id, visit=item.visit).order_by("-seq").first()


def _write(item: Item, last: Taking | None, holder: str, actor: str, now: datetime, using: str) -> Taking:
    taking = Taking(item=item.id, visit=item.visit, seq=last.seq + 1 if last else 1, holder=holder, actor=actor, at=now)
    try:
        with atomic(using=using):
            taking.save(using=using, force_insert=True)
    except IntegrityError:  # At the same moment; who was first has it.
        first = _last(item, using)
        assert first is not None  # noqa: S101 (its row was in the way)
        if first.holder == holder:
            return first
        raise AlreadyTaken(item.id, first.holder, first.at) from None
    return taking
