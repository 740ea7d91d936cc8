"""Entities other than a task's own, for whose events the task waits: find them, lock them, and ask whether they exist."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import router
from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.definition.fitting import led_to
from timeline.exceptions import InvalidInput
from timeline.models import EntityRef, exact_ref, model_of, ref_of, ref_with
from timeline.models.among import Among
from timeline.models.entities import keys_of
from timeline.models.families import concrete_of
from timeline.models.kin import kin_of, roots_of
from timeline.store.entity_locks import try_rows


def refs_led_to(asked: Sequence[tuple[EntityRef, str]], *, using: str) -> list[EntityRef | None]:
    """
    Find the entities to which foreign keys lead from some entities, as the database has them now. One statement for each model
    and path.

    Args:
        asked: Pairs of an entity and a path; see ``led_to``.
        using: Database alias.

    Returns:
        For each pair, the name under which events of the other entity are recorded; None: one of the foreign keys is not set.
    """
    grouped: dict[tuple[str, str], set[EntityRef]] = defaultdict(set)
    for ref, path in asked:
        grouped[ref.label, path].add(ref)
    found: dict[tuple[EntityRef, str], EntityRef] = {}
    for (label, path), refs in grouped.items():
        model = model_of(label)
        end = led_to(model, path) if model is not None else None
        if model is None or end is None:
            continue
        rows = model._base_manager.using(using).filter(Among(keys_of(model, sorted(refs))))
        for key, other in rows.values_list("pk", f"{path.replace('.', '__')}__pk"):
            if other is not None:
                found[EntityRef(label, str(key)), path] = ref_with(concrete_of(end), other)
    roots = kin_of(set(found.values()), using=using)
    return [roots[found[each]][0] if each in found else None for each in asked]


def ref_awaited(entity: Any, *, using: str) -> EntityRef:
    """
    The reference of an entity for whose events a task is going to wait. It may not be the name under which these events are
    recorded, since no statement is made to find that.

    Args:
        entity: A saved entity, or its reference.
        using: Database alias of the task.

    Raises:
        InvalidInput: naming ``of``, if it is no entity, has no primary key yet, or is in another database.
    """
    ref = ref_of(entity)
    if not ref.label or (
        isinstance(entity, EntityRef) and exact_ref(*ref) is None
    ):  # No event can be recorded under this reference.
        remedy = _("Give an entity, or leave it out: then it is the task's own.")
        raise InvalidInput("of", _("is %(value)s."), remedy, value=f"{entity!r:.60}")
    if isinstance(entity, Model) and (alias := router.db_for_write(type(entity), instance=entity)) != using:
        remedy = _("Wait for an event of the task's own entity, and emit that where the other one comes.")
        problem = _("is in the database %(alias)s, and the task in %(using)s.")
        raise InvalidInput("of", problem, remedy, alias=alias, using=using)
    return ref


def lock_awaited(refs: Iterable[EntityRef], *, using: str) -> set[EntityRef]:
    """
    Try to lock other entities for whose events tasks wait, so that nobody can emit an event by any of their names meanwhile.

    Returns:
        The entities that are locked: nobody is emitting an event of them, nor can until our transaction ends.
    """
    roots = {ref: roots_of(names) for ref, names in kin_of(refs, using=using).items()}
    ours = try_rows(sorted(set().union(*roots.values())), using=using)
    return {ref for ref, rows in roots.items() if rows <= ours}


def is_gone(ref: EntityRef, *, using: str) -> bool:
    """Whether an entity does not exist, so that no event of it can come. One statement."""
    model = model_of(ref.label)
    keys = keys_of(model, [ref]) if model is not None else []
    return model is None or not keys or not model._base_manager.using(using).filter(pk__in=keys).exists()
