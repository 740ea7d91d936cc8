"""``StateField``: a copy of a machine's state on the host's model, for queries; and ``known_states``, its CHECK."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Final

from django.db import models, router
from django.db.models import F, Q
from django.db.models.query_utils import DeferredAttribute

from timeline.exceptions import DefinitionError, StateMoved
from timeline.models.entities import family_of, label_of, model_of
from timeline.payloads import as_text
from timeline.registry import registry

if TYPE_CHECKING:
    from django.db.models import Field, Model

    from timeline.definition import Definition

MAX_STATE: Final = 50
_DEFAULTS: Final = {"max_length": MAX_STATE, "default": "", "db_default": "", "blank": True, "editable": False}
_SEEN: Final = "_timeline_seen_"  # Prefix of the field's name: the value with which an instance was made or read.
_NOTHING: Final = object()


def mirror_of(definition: Definition | None) -> Field[Any, Any] | None:
    """The field in which a machine shows its state; None: it shows it nowhere."""
    if definition is None or not definition.mirror:
        return None
    model = model_of(definition.label)
    return None if model is None else model._meta.get_field(definition.mirror)  # type: ignore[return-value]


def machines_showing(field: Field[Any, Any]) -> list[Definition]:
    """The machines that show their states in this field, also machines about children of its model."""
    return [known for known in registry.machines() if known.mirror == field.name and _has(known, field)]


def machine_begun_with(model: type[Model], field: Field[Any, Any]) -> Definition | None:
    """The machine that shows its state in this field of rows of this model; None: there is none about these rows."""
    labels = {label_of(known) for known in family_of(model)}
    return next((known for known in machines_showing(field) if known.label in labels), None)


def _has(definition: Definition, field: Field[Any, Any]) -> bool:
    """Whether rows of its entities have the field. Labels are compared, since models in migrations are different classes."""
    model = model_of(definition.label)
    return model is not None and field.model._meta.label_lower in {label_of(known) for known in family_of(model)}


class _Noting(DeferredAttribute):
    """Notes the value with which an instance was made or read. It refuses nothing, as forms, fixtures and refreshes set it."""

    def __set__(self, instance: Model, value: Any) -> None:
        name = self.field.attname
        # A value that is set on an instance from a database is a refresh, or somebody's wish: ``pre_save`` finds out which.
        if _SEEN + name not in vars(instance) and instance._state.db is None:
            vars(instance)[_SEEN + name] = value
        vars(instance)[name] = value


class StateField(models.CharField):  # type: ignore[type-arg]  # At run time it has no argument.
    """
    The state of the row's machine, for queries: ``Booking.objects.filter(state="SEARCHING")``.

    A machine names this field by ``mirror``. It is written with each move, in the same transaction. Saving an instance never
    moves the machine: a new row begins in its first state, and an existing row keeps the state that it has at that time.

    Args:
        max_length: At most 50. Everything else is as for a ``CharField``. It is empty if there is no machine yet, never NULL.
    """

    descriptor_class = _Noting
    is_mirror = True  # Definitions are in a room below models, and recognise the field by this.

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**_DEFAULTS, **options})

    def contribute_to_class(self, cls: type[Model], name: str, private_only: bool = False) -> None:
        """Wrap ``refresh_from_db``, so that the value that it has read is noted: Django sets it like anybody else."""
        super().contribute_to_class(cls, name, private_only)
        refresh = cls.refresh_from_db

        @wraps(refresh)
        def refresh_from_db(instance: Model, *args: Any, **options: Any) -> None:
            before = vars(instance).get(self.attname, _NOTHING)
            refresh(instance, *args, **options)
            if vars(instance).get(self.attname, _NOTHING) is not before:
                self.note(instance)

        setattr(cls, "refresh_from_db", refresh_from_db)  # noqa: B010 (to mypy, a method is not to be assigned to)

    def note(self, instance: Model) -> None:
        """Note that the present value of an instance is that of its row."""
        if self.attname in vars(instance):
            vars(instance)[_SEEN + self.attname] = vars(instance)[self.attname]

    def deconstruct(self) -> Any:
        name, _path, args, options = super().deconstruct()
        for option, value in _DEFAULTS.items():
            if getattr(self, option) == value:
                options.pop(option, None)
            else:
                options.setdefault(option, getattr(self, option))  # Django leaves out options with its own defaults.
        return name, "timeline.models.StateField", args, options

    def pre_save(self, instance: Model, add: bool) -> Any:
        """The value to write: the first state for a new row, the present one for others. Another raises ``StateMoved``."""
        return self._first(instance) if add else self._kept(instance)

    def refuse(self, instance: Model) -> None:
        """``StateMoved`` if saving would move something; before Django begins. Asks only if somebody has set another state."""
        if self.attname not in vars(instance) or not machines_showing(self):
            return
        if not instance._state.adding:
            self._mind(instance)
        elif self._misses_the_first(instance):
            self._mind(instance)
            if self._row(instance) is None:
                self._first(instance)

    def _first(self, instance: Model) -> Any:
        machine = machine_begun_with(type(instance), self)
        if machine is None or machine.machine is None:
            return getattr(instance, self.attname)
        first = machine.machine.initial
        if (
            not instance._state.adding
        ):  # It was read, and is inserted again; perhaps only if it does not exist any more.
            self._mind(instance)
            return first
        if self._misses_the_first(instance):
            raise StateMoved(_named(instance), str(getattr(instance, self.attname)), first, is_new=True)
        tell(instance, self, first)
        return first

    def _misses_the_first(self, instance: Model) -> bool:
        """Whether a new row has another state than the first one of its machine."""
        machine = machine_begun_with(type(instance), self)
        if machine is None or machine.machine is None:
            return False
        return getattr(instance, self.attname) not in (None, "", self.get_default(), machine.machine.initial)

    def _kept(self, instance: Model) -> Any:
        if not machines_showing(self):
            return getattr(instance, self.attname)
        self._mind(instance)
        return F(self.attname)

    def _mind(self, instance: Model) -> None:
        """Check that a value that somebody has set is that of the row, as after a refresh."""
        value = getattr(instance, self.attname)
        is_new = instance._state.adding and value not in (None, "")  # Made with the key of a row that may exist.
        if is_new or value != vars(instance).get(_SEEN + self.attname, _NOTHING):
            row = self._row(instance)
            if row is not None and row != value:
                raise StateMoved(_named(instance), str(value), row)
            vars(instance)[_SEEN + self.attname] = value

    def _row(self, instance: Model) -> str | None:
        if (key := getattr(instance, self.model._meta.pk.attname)) is None:  # ``self.model`` may be a parent.
            return None
        using = instance._state.db or router.db_for_write(type(instance), instance=instance)
        rows: models.QuerySet[Model] = models.QuerySet(self.model, using=using)
        return rows.filter(pk=key).values_list(self.attname, flat=True).first()


def _named(instance: Model) -> str:
    return f"{instance._meta.label_lower} {'' if instance.pk is None else instance.pk}".strip()


def refuse_moves(instance: Model, *, fields: Collection[str] | None) -> None:
    """Raise ``StateMoved`` if saving these fields (None: all) of an instance would move a machine."""
    for field in _fields_of(type(instance)):
        if fields is None or field.name in fields:
            field.refuse(instance)


def note_saved(instance: Model, *, fields: Collection[str] | None) -> None:
    """Note the values after a save (fields as in ``refuse_moves``): Django 6 sets those of the row on the instance."""
    for field in _fields_of(type(instance)):
        if fields is None or field.name in fields:
            field.note(instance)


@lru_cache(maxsize=256)
def _fields_of(model: type[Model]) -> tuple[StateField, ...]:
    return tuple(field for field in model._meta.concrete_fields if isinstance(field, StateField))


def tell(instance: Model, field: models.Field[Any, Any], state: str) -> None:
    """Set the state on an instance that was written to its row."""
    vars(instance).update({field.attname: state, _SEEN + field.attname: state})


def known_states(states: Iterable[str], *, field: str = "state", name: str = "") -> models.CheckConstraint:
    """
    A constraint for ``Meta.constraints``: the column has one of these states, or is empty, whoever writes it.

    Args:
        states: All states of the machine: its ``StrEnum``, or text. Keep it in a module that both models and timelines import.
        field: Name of the ``StateField``.
        name: Name of the constraint; empty: made of the names of the model and the field.
    """
    known = sorted({as_text(state) for state in states})
    if not known:
        raise DefinitionError("known_states", "is given no state.", "Give those of the machine.")
    # Sorted: otherwise makemigrations would find a change each time.
    return models.CheckConstraint(
        condition=Q(**{f"{field}__in": ["", *known]}), name=name or f"%(app_label)s_%(class)s_{field}_known"
    )
