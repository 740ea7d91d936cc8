"""Hold: nothing runs of what is named, until a time or until somebody releases it."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.models import EntityRef, Hold, Scope, Then, exact_ref, model_of, ref_of
from timeline.models.kin import names_of
from timeline.payloads import check_text
from timeline.registry import registry
from timeline.store.change_columns import MAX_ACTOR, MAX_REASON
from timeline.store.locking import missing
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
    Put something on hold. Its tasks stay as they are, and none is started; what a worker runs already goes on.

    A hold takes no lock, and holds once it is committed: who claims asks for holds in the same statement, and the last look
    asks again, so that within a poll interval nothing of it is entered any more.

    Args:
        scope: What kind of thing it is.
        target: Task key, name of the timeline, or queue; empty for an entity and for everything.
        entity: For an entity, whichever of its names is given: all of its timelines, and what is ad hoc.
        until: When it ends by itself (aware), after now; None: when somebody releases it.
        then: What becomes of its tasks when it ends, see ``release``.
        reason: Why, shown to people; 200 characters at most.
        actor: Who decided; empty for the system itself.
        now: Story time of the decision.
        using: Database alias of the tasks.

    Raises:
        UnknownTask, UnknownTimeline: if this process has none of this name.
        InvalidInput, NaiveDatetime, DateOutOfRange: naming the argument.
        WrongEntity: if it is not in this database. Nothing is written in any of these cases.
    """
    check_text("reason", reason, MAX_REASON, least=1)
    check_text("actor", actor, MAX_ACTOR)
    if then not in Then.values:
        remedy = _("Give one of %(names)s.")
        raise InvalidInput("then", _("%(value)r does not do."), remedy, value=then, names=", ".join(Then.values))
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
    model = model_of(ref.label) if ref.label and exact_ref(*ref) else None  # Rows name it just so, or not at all.
    if model is None or not model._base_manager.using(using).filter(pk=ref.id).exists():
        raise missing(ref, using)
    return names_of(ref, using=using)


def _check_target(scope: Scope, target: str) -> None:
    if scope == Scope.TASK:
        registry.task(target)
    elif scope == Scope.TIMELINE:
        registry.timeline(target)
    elif scope == Scope.QUEUE and not registry.task_keys(target):
        queues = sorted({registry.task(key)[1].options.queue for key in registry.task_keys()})
        remedy = _("Give one of %(names)s.")
        raise InvalidInput("queue", _("no task goes to %(value)r."), remedy, value=target, names=", ".join(queues))
