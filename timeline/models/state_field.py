"""``StateField``: where a host's model shows the state of its machine. The run has it; this is a copy to filter by."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Final

from django.db import models, router
from django.db.models import F, Q
from django.db.models.query_utils import DeferredAttribute

from timeline.exceptions import DefinitionError, StateMoved
from timeline.models.mirrors import machine_begun_with, machines_showing
from timeline.payloads import as_text

if TYPE_CHECKING:
    from django.db.models import Model

MAX_STATE: Final = 50

_DEFAULTS: Final = {"max_length": MAX_STATE, "default": "", "db_default": "", "blank": True, "editable": False}
_SEEN: Final = "_timeline_seen_"  # With the name of the field: what an instance had when it was made or read.
_NOTHING: Final = object()


class _Noting(DeferredAttribute):
    """Notes what an instance was made or read with, and refuses nothing: forms, fixtures and refreshes all set it."""

    def __set__(self, instance: Model, value: Any) -> None:
        name = self.field.attname
        # What is set once the instance has come from a database is a refresh or somebody's wish: ``pre_save`` finds out.
        if _SEEN + name not in vars(instance) and instance._state.db is None:
            vars(instance)[_SEEN + name] = value
        vars(instance)[name] = value


class StateField(models.CharField):  # type: ignore[type-arg]  # At run time it has no argument.
    """
    The state of the row's machine, for queries: ``Booking.objects.filter(state="SEARCHING")``.

    A machine names it by ``mirror``; it is written with each move, in the same transaction. Saving an instance never moves it:
    a new row begins in the machine's first state, and one that is saved keeps the state that it has by then.

    Args:
        max_length: 50 at most. All else as for a ``CharField``; it is empty where there is no machine yet, and never NULL.
    """

    descriptor_class = _Noting
    is_mirror = True  # By which definitions, which are below models, know it.

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**_DEFAULTS, **options})

    def contribute_to_class(self, cls: type[Model], name: str, private_only: bool = False) -> None:
        """Let a refresh note what it has read: Django sets it as anybody would."""
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
        """What an instance has now is what its row had."""
        if self.attname in vars(instance):
            vars(instance)[_SEEN + self.attname] = vars(instance)[self.attname]

    def deconstruct(self) -> Any:
        """Tell migrations what was asked for beyond what it is anyway."""
        name, _path, args, options = super().deconstruct()
        for option, value in _DEFAULTS.items():
            if getattr(self, option) == value:
                options.pop(option, None)
            else:
                options.setdefault(option, getattr(self, option))  # Django leaves out what is its own default.
        return name, "timeline.models.StateField", args, options

    def pre_save(self, instance: Model, add: bool) -> Any:
        """
        Give what is written: the first state to a new row; to one that is there, what it has.

        Raises:
            StateMoved: if the instance says otherwise.
        """
        return self._first(instance) if add else self._kept(instance)

    def refuse(self, instance: Model) -> None:
        """
        See that saving an instance moves nothing, before Django begins to save: what it meets then spoils the transaction.

        It asks the database only where somebody has set another state.

        Raises:
            StateMoved: if it says otherwise than its row, or than new rows begin.
        """
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
        ):  # It was read, and is inserted again, perhaps only where it is not there any more.
            self._mind(instance)
            return first
        if self._misses_the_first(instance):
            raise StateMoved(_named(instance), str(getattr(instance, self.attname)), first, is_new=True)
        tell(instance, self, first)
        return first

    def _misses_the_first(self, instance: Model) -> bool:
        """Whether a new row is to begin in another state than those of its machine do."""
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
        """Where somebody has set it, it has to be what the row has, as after a refresh."""
        value = getattr(instance, self.attname)
        is_new = instance._state.adding and value not in (None, "")  # Made with the key of a row that may be there.
        if is_new or value != vars(instance).get(_SEEN + self.attname, _NOTHING):
            row = self._row(instance)
            if row is not None and row != value:
                raise StateMoved(_named(instance), str(value), row)
            vars(instance)[_SEEN + self.attname] = value

    def _row(self, instance: Model) -> str | None:
        """What the row has; None: it is not there."""
        if (key := getattr(instance, self.model._meta.pk.attname)) is None:  # The row that has it may be a parent's.
            return None
        using = instance._state.db or router.db_for_write(type(instance), instance=instance)
        rows: models.QuerySet[Model] = models.QuerySet(self.model, using=using)
        return rows.filter(pk=key).values_list(self.attname, flat=True).first()


def _named(instance: Model) -> str:
    return f"{instance._meta.label_lower} {'' if instance.pk is None else instance.pk}".strip()


def refuse_moves(instance: Model, *, fields: Collection[str] | None) -> None:
    """
    See that saving an instance moves no machine.

    Args:
        instance: As it is to be saved.
        fields: Names of those that are saved; None: all.

    Raises:
        StateMoved: as ``StateField.refuse``.
    """
    for field in _fields_of(type(instance)):
        if fields is None or field.name in fields:
            field.refuse(instance)


def note_saved(instance: Model, *, fields: Collection[str] | None) -> None:
    """Django 6 has an instance read again what its row has; see ``refuse_moves`` for the arguments."""
    for field in _fields_of(type(instance)):
        if fields is None or field.name in fields:
            field.note(instance)


@lru_cache(maxsize=256)
def _fields_of(model: type[Model]) -> tuple[StateField, ...]:
    return tuple(field for field in model._meta.concrete_fields if isinstance(field, StateField))


def tell(instance: Model, field: models.Field[Any, Any], state: str) -> None:
    """Let an instance have a state that its row has been given."""
    vars(instance).update({field.attname: state, _SEEN + field.attname: state})


def known_states(states: Iterable[str], *, field: str = "state", name: str = "") -> models.CheckConstraint:
    """
    A constraint for ``Meta.constraints``: the column has one of these states, or none yet, whoever writes it.

    Args:
        states: All of the machine's: its ``StrEnum``, or text. Keep it in a module that both models and timelines import.
        field: Name of the ``StateField``.
        name: Of the constraint; empty: made of those of the model and the field.

    Raises:
        DefinitionError: if there is none.
    """
    known = sorted({as_text(state) for state in states})
    if not known:
        raise DefinitionError("known_states", "is given no state.", "Give those of the machine.")
    # In one order: else makemigrations would find a change at every run.
    return models.CheckConstraint(
        condition=Q(**{f"{field}__in": ["", *known]}), name=name or f"%(app_label)s_%(class)s_{field}_known"
    )
