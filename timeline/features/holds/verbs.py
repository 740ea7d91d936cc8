"""Hold: tasks of a target do not run until a time, or until somebody releases them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Model
from django.utils import translation
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.features.holds.store import names_to_hold
from timeline.models import EntityRef, Hold, Scope, Then, exact_ref, model_of, ref_of
from timeline.models.kin import names_of
from timeline.payloads import check_is_text, check_text
from timeline.registry import registry
from timeline.store.alerts import alert_once
from timeline.store.changes import MAX_ACTOR, MAX_REASON
from timeline.store.locks import missing
from timeline.store.transactions import atomic
from timeline.suggestions import with_meant
from timeline.timing import check_time


def hold(
    *,
    scope: Scope,
    target: str = "",
    entity: Model | EntityRef | None = None,
    until: datetime | None = None,
    then: Then | str = Then.RUN,
    reason: str,
    actor: str = "",
    now: datetime,
    using: str,
) -> Hold:
    """
    Put something on hold. Its tasks stay as they are, and none is started; a task that a worker is running already goes on.

    A hold takes no lock. It has effect once it is committed: claims check for holds in the same statement, and the last look
    checks again. So after a poll interval at most, no handler of a held task is entered.

    Args:
        scope: The kind of target.
        target: Task key, name of the timeline, queue, or tag; empty for an entity and for everything.
        entity: For an entity, by any of its names: all of its timelines and its ad hoc tasks are held.
        until: When the hold ends by itself (aware), after now; None: only when somebody releases it.
        then: What happens to the tasks when it ends, see ``release``.
        reason: Why, shown to people; 200 characters at most.
        actor: Who decided; empty for the system itself.

    Raises:
        UnknownTask, UnknownTimeline: if this process has none of this name.
        InvalidInput, NaiveDatetime, DateOutOfRange: naming the argument.
        WrongEntity: if the entity is not in this database. Nothing is written in any of these cases.
    """
    check_text("reason", reason, MAX_REASON, least=1)
    check_text("actor", actor, MAX_ACTOR)
    if then not in Then.values:
        remedy = _("Give one of %(names)s.")
        raise InvalidInput("then", _("%(value)r is not allowed."), remedy, value=then, names=", ".join(Then.values))
    if until is not None and check_time("until", until) <= now:
        raise InvalidInput("until", _("is over already."), _("Give a later time, or none."))
    names = _names(entity, using) if scope == Scope.ENTITY else ()
    if scope != Scope.ENTITY:
        _check_target(scope, target)
    row = Hold(
        scope=scope,
        target=target,
        entity_label=names[0].label if names else "",
        entity_id=names[0].id if names else "",
        names=[list(name) for name in names],
        then=then,
        until=until,
        reason=reason,
        actor=actor,
        created_at=now,
    )
    row.save(using=using, force_insert=True)
    return row


def _names(entity: Model | EntityRef | None, using: str) -> tuple[EntityRef, ...]:
    ref = ref_of(entity)
    model = model_of(ref.label) if ref.label and exact_ref(*ref) else None  # Rows have only this spelling of a name.
    if model is None or not model._base_manager.using(using).filter(pk=ref.id).exists():
        raise missing(ref, using)
    return names_of(ref, using=using)


def _check_target(scope: Scope, target: str) -> None:
    if scope != Scope.TIMELINE:
        check_is_text(scope.value, target)
    if scope == Scope.TASK:
        registry.task(target)
    elif scope == Scope.TIMELINE:
        registry.timeline(target)
    elif scope in (Scope.QUEUE, Scope.TAG) and target not in (known := names_to_hold()[scope]):
        problem = _("no task goes to %(value)r.") if scope == Scope.QUEUE else _("no task has the tag %(value)r.")
        remedy = with_meant(_("Give one of %(names)s."), target, known) if known else _("Name it in tags= of @task.")
        raise InvalidInput(scope.value, problem, remedy, value=target, names=", ".join(known))


def park(task_key: str, *, most: int, within: timedelta, now: datetime, using: str) -> Hold:
    """Put a kind on hold until a person releases it. Of several processes at once, one makes it and tells people."""
    hold = Hold(scope=Scope.TASK, target=task_key, park_above=most, park_within=within, created_at=now)
    with translation.override("en"):
        hold.reason = hold.why
    with atomic(using=using):
        rows = Hold.objects.using(using)
        rows.bulk_create([hold], ignore_conflicts=True)
        # Locked: somebody who releases it now is waited for, or waits until the caller's transaction ends.
        found = rows.open().by_the_brake(task_key).select_for_update(no_key=True).first()
        if found is not None and found.pk == hold.pk:
            alert_once("parked", hold.target, hold.pk, hold.why, hold=str(hold.pk), now=now, using=using)
    return found or hold
