"""What ``self.fan_out(…)`` is given: which task, and once for what; checked before anything is remembered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, Protocol

from django.utils.translation import gettext_lazy as _

from timeline.definition.handlers import Task
from timeline.exceptions import InvalidInput
from timeline.payloads import check_data, check_text

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition


MAX_OCCURRENCE: Final = 100
MAX_OCCURRENCES: Final = 10_000
MAX_MEGABYTES: Final = 16  # Of all payloads of an attempt: they are written in one transaction, from memory.

Payloads = dict[str, dict[str, Any]]  # Occurrence → payload of its row.


class FanOut(Protocol):
    """Remembers, for one attempt, what its handler fans out."""

    def want(self, declared: Task[Any, ..., Any], payloads: Payloads) -> None:
        """Remember occurrences of a task, all of them or none."""


def task_of(definition: Definition, given: object) -> Task[Any, ..., Any]:
    """The task to fan out, by its method or what stands for it; ``InvalidInput`` if it is none with ``each_of``."""
    method = given.method if isinstance(given, Task) else getattr(given, "__func__", None)
    named = getattr(method, "__name__", "")
    declared = next((task for task in definition.tasks.values() if task.method_name == named), None)
    if declared is None or declared.method is not method:
        remedy = _("Give one by its method: self.fan_out(self.settle, …).")
        raise InvalidInput("task", _("%(given).60s is no task of this timeline."), remedy, given=repr(given))
    if declared.when is None or not declared.when.is_for_each:
        remedy = _("Declare it with @task(each_of(…)), naming the task that fans out.")
        raise InvalidInput("task", _("%(name)s is not fanned out."), remedy, name=declared.name)
    return declared


def payloads_of(occurrences: Mapping[str, dict[str, Any]] | Iterable[str]) -> Payloads:
    """
    Read what a task is to be done for: occurrence → payload of its row, or the occurrences alone.

    Raises ``InvalidInput`` for an occurrence that is no text of 1 to 100 characters or is given twice, and for too many or too
    large ones; ``NotPlainJSON``, ``PayloadTooLarge`` for a payload.
    """
    if isinstance(occurrences, str | bytes) or not isinstance(occurrences, Iterable):
        remedy = _("Give a dict from occurrence to payload, or a list of occurrences.")
        raise InvalidInput("occurrences", _("is a %(kind)s."), remedy, kind=type(occurrences).__name__)
    payloads: Payloads = {}
    size = 0
    for occurrence in occurrences:
        check_text("occurrence", occurrence, MAX_OCCURRENCE, least=1)
        if occurrence in payloads:
            refuse_twice(occurrence)
        payload = occurrences[occurrence] if isinstance(occurrences, Mapping) else {}
        if not isinstance(payload, dict):
            kind = type(payload).__name__
            raise InvalidInput(
                "payload", _("of %(name)s is a %(kind)s."), _("Give a dict."), name=occurrence, kind=kind
            )
        size += check_data("payload", payload)
        check_size(size)
        payloads[occurrence] = deepcopy(payload)  # The handler may go on to change its own.
        check_count(len(payloads))
    return payloads


def refuse_twice(occurrence: str) -> None:
    remedy = _("Give each occurrence of a task once.")
    raise InvalidInput("occurrence", _("%(name)s is given twice."), remedy, name=occurrence)


def check_count(count: int) -> None:
    if count > MAX_OCCURRENCES:
        remedy = _("Give each several things to do, by its payload.")
        raise InvalidInput("occurrences", _("are more than %(most)s."), remedy, most=f"{MAX_OCCURRENCES:,}")


def check_size(size: int) -> None:
    if size > MAX_MEGABYTES * 1024 * 1024:
        remedy = _("Store the data, and give each its key.")
        raise InvalidInput("payloads", _("are more than %(most)s MiB together."), remedy, most=MAX_MEGABYTES)
