"""Who may see which tasks, and do what with them. Both faces, admin and API, ask here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.contrib.auth import get_permission_codename, get_user_model
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model, Q, QuerySet
from django.utils.module_loading import import_string

from timeline.conf import get_settings
from timeline.exceptions import UnknownTask
from timeline.lifecycle import OPEN, WAITING, ReasonCode, State
from timeline.models import EntityRef, ScheduledTask, TimelineRun, model_of, ref_as
from timeline.models.entities import keys_of, kinds_of
from timeline.models.kin import Names, can_be_looked_up, keys_within, names_of, naming_one_of
from timeline.registry import registry

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

    from timeline.definition import Definition
    from timeline.models.bulk_action import BulkActionQuerySet
    from timeline.models.decisions import HoldQuerySet
    from timeline.models.run import TimelineRunQuerySet
    from timeline.models.task import ScheduledTaskQuerySet

    User = Model | AnonymousUser


class Action(StrEnum):
    """What somebody may do with a task; the permission is called after it, ``timeline.cancel_scheduledtask``."""

    CANCEL = "cancel"
    MOVE = "move"
    RUN_NOW = "run_now"
    REDRIVE = "redrive"
    DECIDE = "decide"  # About its steps, where it rests because of one.
    APPROVE = "approve"  # These two by the permission that the task itself names.
    REJECT = "reject"


# From which states each action leads anywhere. The operations refuse the rest whatever a face shows.
POSSIBLE: Final = {
    Action.CANCEL: OPEN,
    Action.MOVE: OPEN,
    Action.RUN_NOW: WAITING,
    Action.REDRIVE: frozenset(State) - OPEN,
    Action.DECIDE: frozenset({State.RETRYABLE}),
    Action.APPROVE: WAITING,
    Action.REJECT: WAITING,
}

# By which somebody says yes or no to what a task asks for.
APPROVALS: Final = frozenset({Action.APPROVE, Action.REJECT})

# Why a task rests until somebody decides about one of its steps.
RESTING: Final = frozenset({ReasonCode.IN_DOUBT, ReasonCode.DEFINITION})


def is_possible(action: Action, task: ScheduledTask) -> bool:
    """Whether an action leads anywhere with a task as it is. To decide, there has to be something to decide about."""
    if action in APPROVALS and not (task.awaits and approver_of(task)):
        return False
    return task.state in POSSIBLE[action] and (action != Action.DECIDE or task.reason_code in RESTING)


def approver_of(task: ScheduledTask) -> str:
    """The permission of those who may say yes or no to what it asks for; empty: it asks for nothing."""
    try:
        asked = registry.task(task.task_key)[1].approval if task.run_id else None
    except UnknownTask:
        return ""
    return asked.by if asked else ""


FEW: Final = 1000  # So many entities are named by their keys; more are looked up as rows are read.


class Belonging(NamedTuple):
    """
    Entities whose rows are somebody's.

    Args:
        timeline: Only what this timeline has about them; empty: whatever is about them.
        label: Label of their model.
        ids: Their keys as text; or, where there may be many, a query of the entities in the database of the rows. Their key is
            a number, a UUID or text then.
        looked_up: Of a query, what it is known to have, by key as text; None: nothing is kept.
    """

    timeline: str
    label: str
    ids: list[str] | QuerySet[Any]
    looked_up: dict[str, bool] | None = None

    @property
    def named(self) -> Q:
        """Condition on rows that name one of the entities, of whatever timeline."""
        if isinstance(self.ids, QuerySet):
            return naming_one_of(self.ids)
        return Q(entity_label=self.label, entity_id__in=self.ids)

    def names(self, ref: EntityRef) -> bool:
        """Whether this entity is one of them: by a query, if they are one and it was not looked up."""
        if ref.label != self.label:
            return False
        if not isinstance(self.ids, QuerySet):
            return ref.id in self.ids
        if self.looked_up is not None and ref.id in self.looked_up:
            return self.looked_up[ref.id]
        return any(self.ids.filter(pk=key).exists() for key in keys_of(self.ids.model, [ref]))

    def meets(self, other: Belonging, *, using: str) -> bool:
        """Whether something is in both: by a query, however much is in either, but for accounts that are named by their key."""
        if self.label != other.label or (self.timeline and other.timeline and self.timeline != other.timeline):
            return False
        if not (self.timeline or other.timeline or isinstance(self.ids, QuerySet) or isinstance(other.ids, QuerySet)):
            return bool({*self.ids} & {*other.ids})
        model = model_of(self.label)
        return model is not None and model._base_manager.using(using).filter(self._within, other._within).exists()

    @property
    def _within(self) -> Q:
        """Condition on the entities themselves."""
        if isinstance(self.ids, QuerySet):
            return Q(pk__in=self.ids.order_by().values("pk"))
        model = model_of(self.label)
        keys = list(keys_of(model, [EntityRef(self.label, key) for key in self.ids])) if model is not None else []
        return Q(pk__in=keys) if keys else Q(pk__isnull=True)  # A query, too: it takes as long.

    def look_up(self, refs: Iterable[EntityRef]) -> None:
        """Find out which of these entities are among them, by one query, where each would be one by itself."""
        if self.looked_up is None or not isinstance(self.ids, QuerySet):
            return
        unknown = {ref for ref in refs if ref.label == self.label and ref.id not in self.looked_up}
        keys = {ref: key for ref in unknown for key in keys_within(self.ids.model, [ref])}
        if keys:
            found = set(self.ids.filter(pk__in=list(keys.values())).values_list("pk", flat=True))
            self.looked_up.update({ref.id: key in found for ref, key in keys.items()})


class TimelinePolicy:
    """
    The policy unless the host names another in ``TIMELINE["POLICY"]``, usually a subclass of this one.

    Staff see and do what Django's permissions say. Everybody else sees the tasks of entities that are themselves, or that a
    timeline declares as theirs (``owner``), and changes nothing. Made anew for each request: what it has found out about
    ownership, it keeps.
    """

    def __init__(self) -> None:
        self._belongings: dict[tuple[object, str], list[Belonging]] = {}

    def visible(self, tasks: ScheduledTaskQuerySet, user: User) -> ScheduledTaskQuerySet:
        """
        Narrow tasks down to those the user may see. Every query of a face starts here.

        Args:
            tasks: Of one database; who owns what is looked up there.
            user: Of the request, logged in or not.
        """
        if self._has(user, "view_scheduledtask"):
            return tasks
        if not getattr(user, "is_active", False) or user.pk is None:
            return tasks.none()
        return self.concerning(tasks, user)

    def concerning(self, tasks: ScheduledTaskQuerySet, user: User) -> ScheduledTaskQuerySet:
        """Narrow tasks down to those about a user, or about what a timeline declares as theirs. Says not who may see them."""
        theirs = Q(pk__in=[])
        for belonging in self.belongings(user, using=tasks.db):
            of_timeline = Q(task_key__startswith=f"{belonging.timeline}.") if belonging.timeline else Q()
            theirs |= of_timeline & belonging.named
        return tasks.filter(theirs)

    def belongings(self, user: User, *, using: str) -> list[Belonging]:
        """What is a user's: they themselves, and what a timeline declares as theirs. One query for each such timeline."""
        key = (user.pk, using)
        if key not in self._belongings:
            self._belongings[key] = list(_belongings(user, using))
        return self._belongings[key]

    def sees_timeline(self, user: User, timeline: str, ref: EntityRef, *, using: str) -> bool:
        """Whether the user may see what this timeline has, and would have, for the entity."""
        return self._has(user, "view_scheduledtask") or self._is_whose(user, timeline, ref, using)

    def is_theirs(self, user: User, task: ScheduledTask) -> bool:
        """Whether a task is about the user, or about what its timeline declares as theirs; staff's rights do not matter."""
        return self._is_whose(user, task.timeline, task.entity_ref, task._state.db or DEFAULT_DB_ALIAS)

    def _is_whose(self, user: User, timeline: str, ref: EntityRef, using: str) -> bool:
        if not getattr(user, "is_active", False) or user.pk is None:
            return False
        theirs = self.belongings(user, using=using)
        return any(belonging.timeline in ("", timeline) and belonging.names(ref) for belonging in theirs)

    def may_see(self, user: User, refs: Iterable[EntityRef], *, using: str) -> bool:
        """
        Whether rows about one of these, names of an entity, may be among those that the user sees. It is asked before rows are:
        how long it takes to find nothing among them tells how many there are. A policy that has a ``visible`` or a
        ``sees_timeline`` of its own says it by its rows, so that the answer is yes.
        """
        if self._knows_more or self._has(user, "view_scheduledtask"):
            return True
        if not getattr(user, "is_active", False) or user.pk is None:
            return False
        refs = list(refs)
        return any(known.names(ref) for known in self.belongings(user, using=using) for ref in refs)

    def may_see_of(self, user: User, other: User, *, using: str) -> bool:
        """The same of rows about another user, and about what is theirs: whether anything is both of theirs."""
        if self._knows_more or self._has(user, "view_scheduledtask"):
            return True
        if not getattr(user, "is_active", False) or user.pk is None:
            return False
        theirs = self.belongings(other, using=using)
        return any(mine.meets(known, using=using) for mine in self.belongings(user, using=using) for known in theirs)

    @property
    def _knows_more(self) -> bool:
        ours = (type(self).visible, type(self).concerning) == (TimelinePolicy.visible, TimelinePolicy.concerning)
        return self._asks_of_each or not ours

    def look_up(self, user: User, refs: Iterable[EntityRef], *, using: str) -> None:
        """Find out which of these entities are a user's before it is asked of each: one query for each timeline, if any."""
        if not self._has(user, "view_scheduledtask") and getattr(user, "is_active", False) and user.pk is not None:
            refs = list(refs)
            for belonging in self.belongings(user, using=using):
                belonging.look_up(refs)

    def runs_seen(self, runs: TimelineRunQuerySet, user: User, most: int) -> list[TimelineRun]:
        """
        Read the runs of which the user may see what is foreseen, those recorded last first.

        Args:
            runs: Of one database.
            user: Of the request.
            most: So many at most; of a policy that has a ``sees_timeline`` of its own, those that it lets of so many.
        """
        return self.seen_of(list(self.latest_runs(runs, user, most)), user, using=runs.db)

    def latest_runs(self, runs: TimelineRunQuerySet, user: User, most: int) -> TimelineRunQuerySet:
        """The query of ``runs_seen``: whoever reads it asks ``seen_of`` which of them the user may see."""
        if not self._asks_of_each and not self._has(user, "view_scheduledtask"):
            runs = self.runs_concerning(runs, user) if getattr(user, "is_active", False) else runs.none()
        return runs.order_by("-pk")[:most]  # Keys tell the order of recording, and are an index.

    def seen_of(self, latest: list[TimelineRun], user: User, *, using: str) -> list[TimelineRun]:
        """Of runs that ``latest_runs`` has given, those that the user may see."""
        if not self._asks_of_each:
            return latest
        self.look_up(user, [run.entity_ref for run in latest], using=using)
        return [run for run in latest if self.sees_timeline(user, run.timeline, run.entity_ref, using=using)]

    @property
    def _asks_of_each(self) -> bool:
        return type(self).sees_timeline is not TimelinePolicy.sees_timeline

    def runs_concerning(self, runs: TimelineRunQuerySet, user: User) -> TimelineRunQuerySet:
        """Narrow runs down to those about a user, or about what is theirs. Says not who may see them."""
        theirs = Q(pk__in=[])
        for belonging in self.belongings(user, using=runs.db):
            of_timeline = Q(timeline=belonging.timeline) if belonging.timeline else Q()
            theirs |= of_timeline & belonging.named
        return runs.filter(theirs)

    def sees_model(self, user: User, label: str) -> bool:
        """Whether the user may see which entities of this kind are whose: staff with permission to view or change them."""
        model = model_of(label)
        if model is None or not getattr(user, "is_staff", False):
            return False
        names = [get_permission_codename(verb, model._meta) for verb in ("view", "change")]
        return any(user.has_perm(f"{model._meta.app_label}.{name}") for name in names)  # type: ignore[union-attr]

    def allows(self, user: User, action: Action, task: ScheduledTask | None = None) -> bool:  # noqa: ARG002 (for others)
        """
        Whether the user may do this. Whether the task's state lets it happen is another question: see ``actions``.

        Args:
            user: Of the request, or who asked for a bulk action.
            action: What they want to do. To approve and to reject, they also need what ``may_decide`` says.
            task: A task that the user sees. None: it is asked of no task in particular, by lists and bulk actions, which ask
                of each task later.
        """
        if action in APPROVALS:
            return bool(getattr(user, "is_active", False)) and bool(getattr(user, "is_staff", False))
        return self._has(user, f"{action}_scheduledtask")

    def actions(self, user: User, task: ScheduledTask) -> list[Action]:
        """What the user may do with a task that they see, and that its state lets happen."""
        possible = [action for action in Action if is_possible(action, task) and self.allows(user, action, task)]
        return [action for action in possible if action not in APPROVALS or self.may_decide(user, task)]

    def may_decide(self, user: User, task: ScheduledTask) -> bool:
        """Whether the user may say yes or no to what a task asks for that they see: staff with the permission that it names."""
        permission = approver_of(task)
        return bool(permission) and self.allows(user, Action.APPROVE, task) and bool(user.has_perm(permission))  # type: ignore[union-attr]

    def may_ask(self, user: User, run: TimelineRun, event: str, *, using: str) -> bool:
        """
        Whether the user may say an event that the machine of a run asks people for. Staff may who have a permission that
        ``asks`` names; where it names ``OWNER``, also whoever owns the entity. Where another machine takes the event as well,
        that has to ask them, too, unless they may emit: it would move. Where it approves or rejects a task, they have to be
        those who may.
        """
        definition = registry.about(run.timeline, run.entity_label)
        if definition is None or not getattr(user, "is_active", False) or user.pk is None:
            return False
        others = [known for known in registry.machines(event) if known.label in kinds_of(run.entity_label)]
        return (
            bool(others)
            and event in definition.asks
            and all(self._is_asked(user, known, run, event, using) for known in (definition, *others))
            and self._may_approve(user, event, run.entity_ref, using)
        )

    def may_say(self, user: User, event: str, ref: EntityRef, *, using: str) -> bool:
        """
        Whether the user, who may emit, may say this event of an entity. To emit is not enough for what people are asked for.
        What a machine asks for, those say whom it asks (``may_ask``). What approves or rejects a task, those who may decide.
        """
        labels = kinds_of(ref.label)
        asking = [known for known in registry.machines(event) if event in known.asks and known.label in labels]
        if not asking:
            return self._may_approve(user, event, ref, using)
        names = [known.name for known in asking]
        runs = list(TimelineRun.objects.using(using).open().for_entity(ref).filter(timeline__in=names))
        there = {run.timeline for run in runs}
        runs += [
            TimelineRun(timeline=known.name, entity_label=known.label, entity_id=ref.id)
            for known in asking
            if known.name not in there
        ]
        return all(self.may_ask(user, run, event, using=using) for run in runs)

    def _may_approve(self, user: User, event: str, ref: EntityRef, using: str) -> bool:
        """Whether the user sees, and may decide about, each task to which this event is a yes or a no."""
        for known, key in registry.approvals(event, kinds_of(ref.label)):
            about = {"entity_label": known.label, "entity_id": ref.id}
            task = ScheduledTask(task_key=key, run=TimelineRun(timeline=known.name, **about), **about)
            if not (self.may_decide(user, task) and self.sees_timeline(user, known.name, task.entity_ref, using=using)):
                return False
        return True

    def _is_asked(self, user: User, definition: Definition, run: TimelineRun, event: str, using: str) -> bool:
        ask = definition.asks.get(event)
        if ask is None:
            return self.may_emit(user)
        if getattr(user, "is_staff", False) and any(user.has_perm(name) for name in ask.permissions):  # type: ignore[union-attr]
            return True
        theirs = self.belongings(user, using=using) if ask.owner else []
        return any(known.timeline in ("", definition.name) and known.names(run.entity_ref) for known in theirs)

    def asked_of(self, user: User, run: TimelineRun, *, using: str) -> list[str]:
        """Events that the machine of a run asks for in its state, and that the user may say now; by name."""
        definition = registry.about(run.timeline, run.entity_label)
        if definition is None or not run.is_open:
            return []
        asked = definition.asked_in.get(run.state, ())
        return [event for event in asked if self.may_ask(user, run, event, using=using)]

    def sees_payload(self, user: User) -> bool:
        """Whether the user may read payloads, results and errors."""
        return self._has(user, "view_payload")

    def sees_decisions(self, user: User, task: ScheduledTask) -> bool:  # noqa: ARG002 (for those who answer otherwise)
        """
        Whether the user may read who decided about a task that they see, and what they wrote.

        Staff who may view tasks. Everybody else, owners too, gets the code of the reason, and the name of an exit: what staff
        write is often meant for each other. Answer otherwise where owners are to read it. About who ended a run, the admin asks
        with a task that is no row: it has a run, an entity and a timeline.
        """
        return self._has(user, "view_scheduledtask")

    def may_emit(self, user: User) -> bool:
        """Whether the user may emit events."""
        return self._has(user, "add_event")

    def visible_holds(self, holds: HoldQuerySet, user: User) -> HoldQuerySet:
        """Narrow holds down to those the user may see, with who made them and why: staff who may view them, or hold tasks."""
        return holds if self.sees_holds(user) else holds.none()

    def sees_holds(self, user: User) -> bool:
        """Whether the user may ask for the list of holds."""
        return self._has(user, "view_hold") or self.may_hold(user)

    def may_hold(self, user: User) -> bool:
        """Whether the user may put tasks on hold, whichever they are, and release them."""
        return self._has(user, "hold_tasks")

    def may_apply(self, user: User) -> bool:
        """Whether the user may let the rows of a timeline follow what its code says now, whichever they are."""
        return self._has(user, "apply_plan")

    def calendar_key(self, user: User) -> str:
        """
        Say what the address of a person's calendar is valid with: when it changes, addresses that were made before open
        nothing any more. It is never shown. Empty: they have no calendar.

        Their password as it is stored, or what stands for it where they have none: a new one revokes the address. Answer
        with a field of your own to revoke it by itself.
        """
        return str(getattr(user, "password", "") or "")

    def customer_page(self, user: User, entity: Model) -> str:  # noqa: ARG002 (for those who answer otherwise)
        """
        Say where the site shows people what is ahead of them: staff are led there from the page of an entity in the admin, to
        see what the customer sees.

        Args:
            user: Of the request. A page that lets whoever opens it act as the customer is for few.
            entity: An instance that the user may look at.

        Returns:
            An address, ``/my/42/``. Empty, as here: there is no such page, or it is not for this user.
        """
        return ""

    def visible_bulk_actions(self, bulk_actions: BulkActionQuerySet, user: User) -> BulkActionQuerySet:
        """
        Narrow bulk actions down to those the user may see, with who asked and why: their own, and for staff who may view tasks,
        all.
        """
        if self._has(user, "view_scheduledtask"):
            return bulk_actions
        is_somebody = bool(getattr(user, "is_active", False)) and isinstance(user, get_user_model())
        return bulk_actions.filter(asker=str(user.pk)) if is_somebody else bulk_actions.none()

    def sees_health(self, user: User | None) -> bool:
        """Whether the user may read the figures of a health check, beyond well and sick."""
        return self._has(user, "view_scheduledtask")

    def _has(self, user: User | None, permission: str) -> bool:
        return bool(getattr(user, "is_staff", False)) and bool(user.has_perm(f"timeline.{permission}"))  # type: ignore[union-attr]


def get_policy() -> TimelinePolicy:
    """Make the policy that ``TIMELINE["POLICY"]`` names."""
    policy: TimelinePolicy = import_string(get_settings().POLICY)()
    return policy


def _names_of(user: User, using: str) -> Names:
    """How rows may name the user: by whichever model of their family."""
    return names_of(ref_as(user, get_user_model()), using=user._state.db or using) if isinstance(user, Model) else ()


def _belongings(user: User, using: str) -> Iterator[Belonging]:
    for ref in _names_of(user, using):
        yield Belonging("", ref.label, [ref.id])
    for definition in registry:
        if definition.cls.owner:
            owned = _owned(definition.label, definition.cls.owner, user, using)
            yield Belonging(definition.name, definition.label, owned, {})


def _owned(label: str, owner: str, user: User, using: str) -> list[str] | QuerySet[Any]:
    """The entities that a chain of foreign keys leads from to this user: the keys of a few; a query of many."""
    model = model_of(label)
    if model is None:
        return []
    entities = model._base_manager.using(using).filter(**{owner.replace(".", "__"): user.pk})
    keys = entities.order_by().values_list("pk", flat=True)
    few = list(keys[: FEW + 1])
    if len(few) <= FEW:
        return [str(key) for key in few]
    return entities if can_be_looked_up(entities) else [str(key) for key in keys]
