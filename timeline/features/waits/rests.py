"""What a handler may call so that its task rests: where it may, and how it is asked in an ``async def``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from asgiref.sync import sync_to_async
from django.utils.translation import gettext_lazy as _

from timeline.definition.context import step_under_way
from timeline.exceptions import InvalidInput
from timeline.features.steps.calls import Steps
from timeline.features.steps.refusals import is_in_transaction
from timeline.operations.current import running

if TYPE_CHECKING:
    from timeline.engine.attempts import Attempt

Answer = Callable[[Steps], Any]


class MayRest:
    """Something that a handler calls, and for which its task may rest; of one attempt."""

    word: ClassVar[str]
    """What the handler calls on ``self``."""
    apart: ClassVar[str]
    """By what several calls of it are told apart."""

    def __init__(self, attempt: Attempt, using: str) -> None:
        self._attempt = attempt
        self._using = using

    def _refuse(self) -> None:
        for problem, remedy in self._wrong_place():
            raise InvalidInput(self.word, problem, remedy)

    def _wrong_place(self) -> Iterator[tuple[Any, Any]]:
        attempt = self._attempt
        if attempt.declared.options.bulk is not None:
            yield _("is called in a handler with bulk."), _("Take bulk out, or let a task of its own follow.")
        elif attempt.declared.options.atomic:
            problem = _("is called in an atomic handler: what that has written would be kept, or done again, half-way.")
            yield problem, _("Declare the task with atomic=False.")
        elif step_under_way.get() is not None:
            yield _("is called in a step."), _("Call it in the handler, between the steps.")
        elif attempt.task.id not in running():
            yield _("is called in another thread."), _("Call it where the handler runs.")
        elif not attempt.declared.is_async and is_in_transaction(self._using):
            yield _("is called in a transaction, which would be held open."), _("Call it outside of atomic().")

    def _asked(self, name: str, answer: Answer) -> Any:
        """What ``answer`` gives, asked once in an attempt under this name; of an ``async def``, a coroutine. It may rest."""
        attempt = self._attempt
        self._refuse()
        if attempt.steps is None:  # Its timeline has none: here they only see that a caught rest stands.
            attempt.steps = Steps(attempt, self._using)
        attempt.steps.announce_rest(name, self.word, self.apart)
        if attempt.declared.is_async:
            return self._asked_beside(attempt.steps, answer)
        with attempt.steps.stopping():
            return answer(attempt.steps)

    async def _asked_beside(self, steps: Steps, answer: Answer) -> Any:
        with steps.beside_others(), steps.stopping():
            steps.refuse_to_go_on()
            return await sync_to_async(answer)(steps)
