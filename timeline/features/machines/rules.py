"""What is wrong with the mirror of a machine (the field that shows its state), its rests, or tasks bound to states."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import CheckConstraint, Field, Model

from timeline.definition.names import MAX_TASK_KEY
from timeline.features.machines.timers import Timer
from timeline.hooks import Rules
from timeline.suggestions import did_you_mean

if TYPE_CHECKING:
    from timeline.definition.check_timelines import Problem
    from timeline.definition.definitions import Definition
    from timeline.definition.handlers import Task
    from timeline.features.machines.table import Table


_DECLARE = "Declare it in the model: {name} = StateField(), from timeline.models."


def mirror_problems(mirror: object, *, entity: object, key: object) -> Iterator[Problem]:
    """List what can be seen of a mirror without its model, as (problem, remedy)."""
    if not isinstance(mirror, str):
        yield f"has mirror = {mirror!a:.60}.", 'Give the name of a field: mirror = "state".'
    elif mirror and not entity:
        yield f"has mirror = {mirror!r}, and no entity that could show it.", "Remove it, or name the entity."
    elif mirror and key:
        yield (
            f"has mirror = {mirror!r} and a key: an entity has several runs then, each in a state of its own.",
            "Remove one of them.",
        )


def field_problems(definition: Definition, model: type[Model]) -> Iterator[Problem]:
    """List what is wrong with the field that a mirror names, as (problem, remedy)."""
    if not (name := definition.mirror) or definition.machine is None:
        return
    said, remedy = f"has mirror = {name!r}", _DECLARE.format(name=name)
    field = _field(model, name)
    if field is None:
        yield f"{said}, which {definition.label} does not have.", remedy
    elif not getattr(field, "is_mirror", False):
        yield f"{said}, a {type(field).__name__}: a save() of an old instance would write an old state.", remedy
    elif field.null:
        yield f"{said}, which may be NULL.", "Remove null=True: it is empty where there is no state yet."
    elif field.max_length is None or field.max_length < (least := max(map(len, definition.machine.states))):
        yield f"{said}, which has {field.max_length} characters.", f"Give it max_length={least}, or leave that out: 50."
    elif not _shares_key(model, field.model):
        yield (
            f"{said}, which it inherits by a link that is not its primary key.",
            "Declare the field in the model itself.",
        )
    elif refused := _refused(field, definition.machine.states):
        yield (
            f"{said}, in which a CHECK of the model refuses the state {refused!r}.",
            "Add it to what known_states(…) is given, and make a migration.",
        )


def shared_problems(
    definition: Definition, model: type[Model], others: Iterable[tuple[Definition, type[Model]]]
) -> Iterator[Problem]:
    """List what two machines would show in one column, as (problem, remedy)."""
    for other, theirs in others:
        if not definition.mirror or other.mirror != definition.mirror or other.name == definition.name:
            continue
        same_row = issubclass(model, theirs) or issubclass(theirs, model)
        if same_row and _home(model, definition.mirror) is _home(theirs, other.mirror):
            yield (
                f"has mirror = {definition.mirror!r}, in which the machine {other.name!r} shows its state.",
                "Give each a field of its own.",
            )


def _field(model: type[Model], name: str) -> Field[Any, Any] | None:
    try:
        field = model._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    return field if isinstance(field, Field) else None


def _refused(field: Field[Any, Any], states: Iterable[str]) -> str:
    """The first state that a constraint such as ``known_states`` makes refuses; empty: none."""
    for constraint in field.model._meta.constraints:
        condition: Any = getattr(constraint, "condition", None) if isinstance(constraint, CheckConstraint) else None
        match getattr(condition, "children", []):
            case [(str(lookup), list(known))] if lookup == f"{field.name}__in" and not condition.negated:
                if refused := next((state for state in states if state not in known), ""):
                    return refused
    return ""


def _home(model: type[Model], name: str) -> type[Model] | None:
    field = _field(model, name)
    return None if field is None else field.model


def _shares_key(child: type[Model], parent: type[Model]) -> bool:
    """Whether each link from a model up to the one that has the field is a primary key."""
    own: Any = child
    while own is not parent and (link := own._meta.get_ancestor_link(parent)) is not None:
        if not link.primary_key:
            return False
        own = link.related_model
    return True


def bound_problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[tuple[str, str]]:
    """List what is wrong with the states that a task is bound to, and with following one that is, as (problem, remedy)."""
    when = declared.when
    if when is None:
        return
    predecessor = definition.tasks.get(when.predecessor_name)
    if predecessor is not None and predecessor.is_in_state:
        remedy = "Let its handler return Then(…), and bind this one to the state where that leads: on(…)."
        yield f"follows {predecessor.name!r}, which comes again each time that its state is entered.", remedy
    if not when.during:
        return
    if definition.machine is None:
        yield f"is bound to the state {when.during[0]!r}, but its class is no machine.", "Inherit from Machine."
        return
    if when.backoff is not None and not declared.is_timer:
        yield "has a backoff.", "Only timers have: put it into timers; a task that fails has retry=…"
    yield from unknown_states(definition.machine, when.during)


def rest_problems(definition: Definition, *, nullable: Collection[str] | None = None) -> Iterator[tuple[str, str]]:
    """
    Rests in which a machine might wait for ever, and other faults of its timers, as (problem, remedy). ``nullable``: fields
    that may be NULL, whose time may never come; None: not known yet. A machine that does nothing by itself, names no working
    state and has nothing bound to one, only keeps a state: whoever moves it knows when.
    """
    table = definition.machine
    if table is None:
        return
    bound = [(task, task.when) for task in definition.tasks.values() if task.when is not None and task.when.during]
    lasting = [
        (state, when)
        for task, when in bound
        for state in when.during
        if not (isinstance(task, Timer) and table.may_pass(task.event, state))
    ]
    due = {state for state, when in lasting if when.field_name not in (nullable or ())}
    sure = {state for state, when in lasting if not when.field_name} if nullable is None else due
    acts = bool(table.working or bound or definition.timers.never)
    without = (
        [] if not acts else [state for state in table.states if state in table.rests - due - definition.timers.never]
    )
    if without:
        shown = ", ".join(map(repr, without))
        here = [(task, when) for task, when in bound if not set(without).isdisjoint(when.during)]
        passing = [
            task.event
            for task, when in here
            if isinstance(task, Timer) and any(table.may_pass(task.event, state) for state in when.during)
        ]
        maybe = [
            f'{task.event if isinstance(task, Timer) else task.name}: {when.verb}("{when.field_name}")'
            for task, when in here
            if when.field_name
        ]
        why = "nothing is ever due"
        if passing:
            why = f"the timer of {passing[0]!r} is ignored if no condition holds"
        elif maybe:
            why = f"{', '.join(maybe)} never comes where the field is NULL"
        yield (
            f"may rest for ever in {shown}, where {why}.",
            f'Give a timer, timers = {{"an.event": on({without[0]!r}, days=2)}}; or say so: {{({shown},): never}}.',
        )
    if twice := sorted(sure & definition.timers.never):
        yield f"has something that is due in {twice[0]!r}, and says never of it.", "Leave one of them out."
    for name, timer in definition.timers.tasks.items():
        if len(definition.task_key(name)) > MAX_TASK_KEY:
            yield (
                f"has a timer of {timer.event!r}, whose name is too long.",
                "Use a shorter name for event or timeline.",
            )


def unknown_states(table: Table, states: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """List those states that a table does not have, or in which nothing is done, as (problem, remedy)."""
    for state in states:
        if state not in table.rows:
            meant = did_you_mean(state, table.states, otherwise=f"Name one such as {table.initial!r}.")
            yield f"names the state {state!r}, which has no row in the table.", meant
        elif state in table.ends:
            yield f"is bound to {state!r}, which is an end: its run is over there.", "Use starts_on = after_run(…)."


def _of_model(definition: Definition, model: type[Model]) -> Iterator[Problem]:
    nullable = {field.name for field in model._meta.get_fields() if getattr(field, "null", False)}
    yield from field_problems(definition, model)
    yield from rest_problems(definition, nullable=nullable)


RULES = Rules(of_class=(rest_problems,), of_task=(bound_problems,), of_model=(_of_model,), of_others=(shared_problems,))
