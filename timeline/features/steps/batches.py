"""The batches that ``self.each`` takes: rows of a queryset in the order of their primary keys, and sums over them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS, router
from django.db.models import CompositePrimaryKey, Model, QuerySet
from django.db.models.query import ModelIterable
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.features.steps.declaration import BoundStep

Row = TypeVar("Row", bound=Model)

Sums = dict[str, Any]  # Name → number.

MAX_SIZE: Final = 10_000


class Batches(Generic[Row]):
    """
    Rows of one model, ``size`` at a time, in the order of the primary key; filters and annotations are kept. ``using`` counts
    where neither the queryset nor a router of the host's names a database. Refuses other ``rows`` or ``size``.
    """

    def __init__(self, rows: QuerySet[Row], size: int, *, using: str | None = None) -> None:
        _check(rows, size)
        self.size = size
        given: Any = rows
        alias = given._db or router.db_for_write(rows.model)
        self._rows: Any = rows.using(using if using and not given._db and alias == DEFAULT_DB_ALIAS else alias)

    @property
    def given(self) -> dict[str, Any]:
        """What is told apart: a place in one model is none in another."""
        return {"each": self._rows.model._meta.label_lower}

    @property
    def using(self) -> str:
        """Alias of the database they are read from."""
        alias: str = self._rows.db
        return alias

    @property
    def are_locked(self) -> bool:
        """Whether they are to be locked when they are read."""
        return bool(self._rows.query.select_for_update)

    def count(self) -> int:
        """How many rows there are now."""
        rows = self._rows.order_by().values("pk")
        number: int = (rows.distinct() if len(rows.query.alias_map) > 1 else rows).count()
        return number

    def after(self, key: object) -> list[Row]:
        """The next batch after this primary key, as ``key_of`` gives it; None: from the first row on."""
        rows = self._rows if key is None else self._rows.filter(pk__gt=self._as_read(key))
        rows = rows.order_by("pk")
        rows.query.standard_ordering = True
        return list(_by_key(rows[: self.size]).values())  # A join may give a row several times.

    def those(self, keys: Collection[object]) -> list[Row]:
        """
        Rows by their keys, without those that are gone. What the filters would not give any more is read without filters and
        annotations: a count would be another one now.
        """
        asked = [self._as_read(key) for key in keys]
        found = _by_key(self._rows.filter(pk__in=asked))
        if left := [key for key in asked if key not in found]:
            found |= _by_key(self._rows.model._base_manager.using(self.using).filter(pk__in=left))
        return [found[key] for key in asked if key in found]

    def _as_read(self, key: object) -> Any:
        """A primary key as rows have it."""
        return self._rows.model._meta.pk.to_python(key)


def key_of(row: Model) -> Any:
    """The primary key as JSON."""
    return row.pk if isinstance(row.pk, int | str) else row._meta.pk.value_to_string(row)


def _by_key(rows: Iterable[Row]) -> dict[Any, Row]:
    return {row.pk: row for row in rows}


def add(sums: Sums, batch: object, *, step: str) -> Sums:
    """Add what the step made of one batch: None, or numbers by name; ``InvalidInput`` if it is something else."""
    if batch is None:
        return sums
    field = f"result of step {step}"
    if not isinstance(batch, Mapping) or not all(map(_is_counted, batch.items())):
        problem = _("is %(value)s for a batch.")
        raise InvalidInput(field, problem, _("Return numbers by name, or None."), value=f"{batch!a:.60}")
    try:
        return {**sums, **{name: sums.get(name, 0) + number for name, number in batch.items()}}
    except OverflowError:
        raise InvalidInput(field, _("sums to more than a float holds."), _("Return smaller numbers.")) from None


def each(batches: Batches[Row], body: Callable[[list[Row]], object], *, step: str) -> Sums:
    """Take all batches, where nothing is recorded: in a unit test."""
    key: object = None
    sums: Sums = {}
    while rows := batches.after(key):
        key, sums = rows[-1].pk, add(sums, body(rows), step=step)
    return sums


async def each_async(batches: Batches[Row], body: Callable[[list[Row]], Awaitable[object]], *, step: str) -> Sums:
    """As ``each``, of a step declared with ``async def``."""
    key: object = None
    sums: Sums = {}
    while rows := await sync_to_async(batches.after)(key):
        key, sums = rows[-1].pk, add(sums, await body(rows), step=step)
    return sums


def check_step(step: object, timeline: object) -> None:
    """Refuse what ``self.each`` does not take: ``InvalidInput``, naming ``step``."""
    is_ours = isinstance(step, BoundStep) and type(step.timeline) is type(timeline)
    if isinstance(step, BoundStep) and is_ours:
        if not step.step.options.once:
            return
        problem = _("%(step)s is declared with once=True: of many batches, each might be in doubt.")
        raise InvalidInput("step", problem, _("Call it with one row, under its key."), step=step.step.name)
    problem, remedy = (
        _("%(given)s is no step of this timeline."),
        _("Give one by its method: self.each(self.settle, …)."),
    )
    raise InvalidInput("step", problem, remedy, given=f"{step!a:.60}")


def _is_counted(item: tuple[object, object]) -> bool:
    name, number = item
    return isinstance(name, str) and isinstance(number, int | float) and not isinstance(number, bool)


def _check(rows: object, size: object) -> None:
    if not isinstance(rows, QuerySet):
        raise InvalidInput("rows", _("is a %(kind)s."), _("Give a queryset."), kind=type(rows).__name__)
    query: Any = rows.query
    remedy = _("Give all rows of one model, by filters only.")
    if not issubclass(rows._iterable_class, ModelIterable):
        raise InvalidInput("rows", _("gives no model instances."), remedy)
    if query.is_sliced or query.combinator or query.distinct_fields:
        raise InvalidInput("rows", _("is sliced, combined, or distinct by fields."), remedy)
    if query.select_for_update_skip_locked:
        problem = _("skips what somebody has locked, which would never be taken.")
        raise InvalidInput("rows", problem, _("Take skip_locked out."))
    if query.where.contains_over_clause or any(found.contains_over_clause for found in query.annotations.values()):
        problem = _("has a window, which would be told anew in each batch.")
        raise InvalidInput("rows", problem, _("Give the primary keys that it finds: filter(pk__in=…)."))
    if isinstance(rows.model._meta.pk, CompositePrimaryKey):
        raise InvalidInput(
            "rows", _("is of a model with several primary keys."), _("Take its rows in a step of your own.")
        )
    if type(size) is not int or not 1 <= size <= MAX_SIZE:
        problem, remedy = _("is %(size)s."), _("Give a whole number from 1 to %(most)s.")
        raise InvalidInput("size", problem, remedy, size=f"{size!a:.60}", most=MAX_SIZE)
