"""Refuse steps that are called where a step cannot be done, each with the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import connections
from django.utils.translation import gettext_lazy as _

from timeline.definition.context import step_under_way
from timeline.exceptions import InvalidInput

if TYPE_CHECKING:
    from timeline.definition import Step, Task
    from timeline.definition.looping import Batches

_NO_TRANSACTION: Final = (0, 4)  # psycopg's numbers for a connection that is idle, and for one that is lost.


def refuse_step(
    step: Step[Any, ..., Any], name: str, *, handler: Task[Any, ..., Any], elsewhere: bool, again: bool, using: str
) -> None:
    """
    Refuse a step that cannot be done here.

    Args:
        step: As declared.
        name: With its key.
        handler: The task whose handler calls it.
        elsewhere: Whether it is called in another thread than the handler's.
        again: Whether this attempt has called it before.
        using: Database alias.

    Raises:
        InvalidInput: naming the step, what is wrong and what to do.
    """
    if wrong := _wrong_handler(step, handler) or _wrong_place(step, elsewhere, again, using):
        raise InvalidInput("step", *wrong, step=name, method=step.name)


def refuse_rows(step: Step[Any, ..., Any], batches: Batches[Any], *, using: str) -> None:
    """
    Refuse rows for which a step cannot be done.

    Args:
        step: As declared.
        batches: The rows, in batches.
        using: Database alias of the step's record.

    Raises:
        InvalidInput: naming ``rows``.
    """
    if step.options.atomic and batches.using != using:
        problem = _("is of the database %(using)s, which the transaction of %(step)s is not of.")
        raise InvalidInput(
            "rows", problem, _("Declare the step with atomic=False."), using=batches.using, step=step.name
        )
    if batches.are_locked and not step.options.atomic:
        problem = _("locks its rows, and %(step)s has no transaction.")
        raise InvalidInput("rows", problem, _("Take select_for_update() out, or lock in the step."), step=step.name)


def _wrong_handler(step: Step[Any, ..., Any], handler: Task[Any, ..., Any]) -> tuple[Any, Any] | None:
    """The problem and the remedy; None: there is none."""
    if handler.options.bulk is not None:
        return _("%(step)s is called for many entities at once."), _("Take steps in a handler without bulk.")
    if handler.options.atomic:
        problem = _("%(step)s is called in an atomic handler: with its transaction, the record could be undone.")
        return problem, _("Declare the task with atomic=False.")
    if handler.is_async is not step.is_async:
        problem = _("%(step)s and the handler are not both declared with async def.")
        return problem, _("Declare both with async def, or none.")
    return None


def _wrong_place(step: Step[Any, ..., Any], elsewhere: bool, again: bool, using: str) -> tuple[Any, Any] | None:
    """As ``_wrong_handler``."""
    if step_under_way.get() is not None:
        return _("%(step)s is called in another step."), _("Call it in the handler, after the other one.")
    if not step.is_async and elsewhere:
        return _("%(step)s is called in another thread."), _("Call it where the handler runs.")
    if not step.is_async and is_in_transaction(using):
        problem = _("%(step)s is called in a transaction: with that, the record could be undone after it happened.")
        return problem, _("Call it outside of atomic(); an atomic step has a transaction of its own.")
    if again:
        remedy = _("Tell the calls apart by a key: self.%(method)s.keyed(…).")
        return _("%(step)s is called twice in one attempt."), remedy
    return None


def is_in_transaction(using: str) -> bool:
    """Whether the host has begun a transaction; the transaction of a test case does not count."""
    connection: Any = connections[using]
    if blocks := connection.atomic_blocks:
        return not blocks[-1]._from_testcase
    if connection.connection is None:
        return False
    status = getattr(getattr(connection.connection, "pgconn", None), "transaction_status", 0)
    in_one = status not in _NO_TRANSACTION
    return not connection.autocommit or in_one or getattr(connection.connection, "in_transaction", False)
