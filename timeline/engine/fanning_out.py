"""What the handler of one attempt fans out: remembered here, and written with its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from timeline.confiding import check_data
from timeline.definition.context import step_under_way
from timeline.definition.fanning import check_count, check_size, refuse_twice
from timeline.exceptions import InvalidInput

if TYPE_CHECKING:
    from timeline.definition import Task
    from timeline.definition.fanning import Payloads


class FannedOut:
    """
    The occurrences that one attempt wants. If the attempt does not complete, they are forgotten with it.

    Args:
        handler: The task whose handler is entered.
        in_run: Whether the task belongs to a run.
    """

    def __init__(self, handler: Task[Any, ..., Any], *, in_run: bool) -> None:
        self._handler = handler
        self._in_run = in_run
        self._wanted: dict[str, Payloads] = {}
        self._size = 0  # Bytes of all payloads.
        self._is_over = False

    def want(self, declared: Task[Any, ..., Any], payloads: Payloads) -> None:
        """
        Remember occurrences; see ``timeline.definition.fanning.FanOut``.

        Raises:
            InvalidInput: naming what is wrong with the place of this call, or with the names or payloads given.
        """
        self._refuse_place()
        self._refuse_stranger(declared)
        known = self._wanted.get(declared.name, {})
        for occurrence in payloads:
            if occurrence in known:
                refuse_twice(occurrence)
        check_count(len(payloads) + sum(map(len, self._wanted.values())))
        size = self._size + sum(check_data("payload", payload) for payload in payloads.values())
        check_size(size)
        self._size, self._wanted[declared.name] = size, known | payloads

    def end(self) -> Mapping[str, Payloads]:
        """Give what is wanted: name of a task → its occurrences. Later calls of ``want`` are refused."""
        self._is_over = True
        return self._wanted

    def _refuse_place(self) -> None:
        if self._handler.options.bulk is not None:
            problem = _("cannot be called by a call for many.")
            raise InvalidInput("fan_out", problem, _("Declare the task that fans out without bulk."))
        if not self._in_run:
            problem = _("cannot be called by an ad hoc task, which has no run.")
            raise InvalidInput("fan_out", problem, _("Start a run of the timeline."))
        if step_under_way.get() is not None:
            problem = _("cannot be called within a step, which a later attempt passes over.")
            raise InvalidInput("fan_out", problem, _("Let the step return what is wanted, and call it in the handler."))
        if self._is_over:
            problem = _("comes too late: the handler has ended.")
            raise InvalidInput("fan_out", problem, _("Wait in the handler for what calls it."))

    def _refuse_stranger(self, declared: Task[Any, ..., Any]) -> None:
        by = declared.when.predecessor_name if declared.when else ""
        if by != self._handler.name:
            problem, remedy = _("%(name)s is fanned out by %(by)s, not by %(handler)s."), _("Call it there.")
            raise InvalidInput("task", problem, remedy, name=declared.name, by=by, handler=self._handler.name)
