"""What is wrong with the mirror of a machine, the field of its entity that shows its state; with the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import CheckConstraint, Field, Model

if TYPE_CHECKING:
    from timeline.definition.checking import Problem
    from timeline.definition.definitions import Definition

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
