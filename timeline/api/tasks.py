"""Tasks: listed, looked at, and changed by those who may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext_lazy as _
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from timeline import shortcuts
from timeline.api.base import TimelineAPI
from timeline.api.fields import StrictSerializer
from timeline.api.filters import InstantFilter, TaskFilters, TextFilter
from timeline.api.pagination import TaskPagination
from timeline.api.preconditions import RequestOutcome, answer_once, columns_of, not_modified, row_of, seen_by, tag_of
from timeline.api.requests import DecisionBody, HappenedBody, MoveBody, ReasonBody, StepBody
from timeline.api.schema import IF_MATCH, IF_NONE_MATCH, REPEATABLE, TAG, UNCHANGED, answers, described
from timeline.api.serializers import TaskDetailSerializer, TaskSerializer
from timeline.exceptions import ChangedSince, TransitionNotAllowed
from timeline.models import ScheduledTask
from timeline.policy import APPROVALS, Action, is_possible
from timeline.reading.changes_since import changes_since
from timeline.timing import Offset

_CHANGED = answers(404, 409, 412, 413, 415, 422, ok=TaskSerializer)
_CONDITIONS = [IF_MATCH, TAG, *REPEATABLE]
_LONGEST: Final = 9  # Digits of the number of an entry.
_BEFORE: Final = OpenApiParameter(
    "before",
    {"type": "string", "pattern": f"^[0-9]{{1,{_LONGEST}}}$"},
    description="Only entries of the log before the one with this number.",
)


def place_in(request: Request) -> int | None:
    """Before which entry the part of the log ends that is asked for; None: the latest is."""
    given = request.query_params.get(_BEFORE.name)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= _LONGEST):
        raise ValidationError({_BEFORE.name: _("Give the number of an entry.")})
    return int(given)


class TaskViewSet(TimelineAPI, GenericViewSet[ScheduledTask]):
    """Tasks that the user may see."""

    queryset = ScheduledTask.objects.none()  # Says of which model; what is read, get_queryset() says.
    serializer_class = TaskSerializer
    detail_serializer_class: type[TaskDetailSerializer] = TaskDetailSerializer
    filter_backends = [DjangoFilterBackend]
    filterset_class: type[TaskFilters] = TaskFilters
    pagination_class = TaskPagination

    @described(responses=answers(ok=TaskSerializer(many=True)))
    def list(self, request: Request) -> Response:
        """List tasks by due time, without what only the detail shows."""
        tasks = self.filter_queryset(self.get_queryset().defer("payload", "result", "error"))
        page = self.paginate_queryset(tasks)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @described(
        parameters=[_BEFORE, IF_NONE_MATCH, TAG], responses={**answers(404, ok=TaskDetailSerializer), 304: UNCHANGED}
    )
    def retrieve(self, request: Request, pk: UUID) -> Response:
        """Show one task with its log and its story; of a long log the latest entries."""
        before, task = place_in(request), self._seen(pk)
        context = {**self.get_serializer_context(), "before": before}
        shown = self.detail_serializer_class(task, context=context).data
        answer = Response(shown)
        not_modified(request, answer, tag_of(task, shown))
        return answer

    @described(request=ReasonBody, parameters=_CONDITIONS, responses=_CHANGED)
    def cancel(self, request: Request, pk: UUID) -> Response:
        """Call it off; also while a worker runs it."""
        return self._act(pk, Action.CANCEL, ReasonBody, shortcuts.cancel)

    @described(request=MoveBody, parameters=_CONDITIONS, responses=_CHANGED)
    def move(self, request: Request, pk: UUID) -> Response:
        """
        Give it another time, or move it by so much. Of one that is due already, the next revision is answered: it carries on.
        """
        return self._act(pk, Action.MOVE, MoveBody, _moved)

    @described(request=ReasonBody, parameters=_CONDITIONS, responses=_CHANGED)
    def run_now(self, request: Request, pk: UUID) -> Response:
        """Make it due at once; its guards are read all the same."""
        return self._act(pk, Action.RUN_NOW, ReasonBody, shortcuts.run_now)

    @described(request=ReasonBody, parameters=_CONDITIONS, responses=_CHANGED)
    def redrive(self, request: Request, pk: UUID) -> Response:
        """Run again what has ended: its next revision is answered."""
        return self._act(pk, Action.REDRIVE, ReasonBody, shortcuts.redrive)

    @described(request=HappenedBody, parameters=_CONDITIONS, responses=_CHANGED)
    def step_happened(self, request: Request, pk: UUID) -> Response:
        """Say that a step happened of which nobody knows it. The task rests because of it, and goes on behind it at once."""
        return self._act(pk, Action.DECIDE, HappenedBody, _of_one(shortcuts.step_happened))

    @described(request=StepBody, parameters=_CONDITIONS, responses=_CHANGED)
    def forget_step(self, request: Request, pk: UUID) -> Response:
        """Have a step done again. The task rests because of its steps, and goes on at once."""
        return self._act(pk, Action.DECIDE, StepBody, _of_one(shortcuts.forget_step))

    @described(request=ReasonBody, parameters=_CONDITIONS, responses=_CHANGED)
    def go_on(self, request: Request, pk: UUID) -> Response:
        """Let a task go on that rests because its code has changed: what is done counts, in whatever order."""
        return self._act(pk, Action.DECIDE, ReasonBody, _of_one(shortcuts.go_on))

    @described(request=DecisionBody, parameters=_CONDITIONS, responses=_CHANGED)
    def approve(self, request: Request, pk: UUID) -> Response:
        """Say yes to what it asks for. It takes the permission that the task names; the first decision stands."""
        return self._act(pk, Action.APPROVE, DecisionBody, _of_one(shortcuts.approve))

    @described(request=DecisionBody, parameters=_CONDITIONS, responses=_CHANGED)
    def reject(self, request: Request, pk: UUID) -> Response:
        """Say no to what it asks for. It takes the permission that the task names; the first decision stands."""
        return self._act(pk, Action.REJECT, DecisionBody, _of_one(shortcuts.reject))

    def known_parameters(self) -> Iterable[str]:
        """Of lists filters, and what pages are asked for with; of one task which part of its log."""
        if self.action != "list":
            return (_BEFORE.name,) if self.action == "retrieve" else ()
        return [*self.filterset_class.base_filters, *getattr(self.paginator, "parameters", ())]

    def takes_several(self, name: str) -> bool:
        """Filters that have one value, and what pages are asked for with, do not."""
        known = self.filterset_class.base_filters.get(name)
        return known is not None and not isinstance(known, TextFilter | InstantFilter)

    def _seen(self, pk: UUID) -> ScheduledTask:
        return self.get_queryset().select_related("run", "cause").get(pk=pk)

    def _act(
        self,
        pk: UUID,
        action: Action,
        body_class: type[StrictSerializer],
        operation: Callable[..., Sequence[ScheduledTask]],
    ) -> Response:
        """Look who asks before looking at what is sent, so that nobody learns of what they do not see."""
        task, user = self._seen(pk), self.request.user
        possible = is_possible(action, task)
        if not self.policy.allows(user, action, task) or (possible and action not in self.policy.actions(user, task)):
            raise PermissionDenied
        if action in APPROVALS and not self.policy.may_decide(user, task):
            raise PermissionDenied
        body = body_class.read(self.request)

        def act() -> RequestOutcome:
            seen = seen_by(self.request, pk, task.seq)
            if action == Action.DECIDE and not possible and (seen is None or seen[pk] == task.seq):
                remedy, verb = _("It does not wait for a decision about a step."), self.action.replace("_", " ")
                raise TransitionNotAllowed(task.state, action, remedy, pk, verb)
            given = {**body, "seen": seen}
            changed = operation(task, actor=self.actor, using=self.get_using(), **given)[0]
            return RequestOutcome(columns_of(changed), headers={"ETag": tag_of(changed)})

        def show(columns: Any, again: bool) -> Any:
            shown = row_of(columns, using=self.get_using())
            if again and shown.pk != pk:  # Another revision, which they may see no longer.
                self._seen(shown.pk)
            return self.get_serializer(shown).data

        try:
            return answer_once(self.request, act, show, using=self.get_using())
        except ChangedSince as error:
            error.changes = self._changes(pk)
            raise

    def _changes(self, pk: UUID) -> Sequence[str]:
        task = self._seen(pk)
        seen = seen_by(self.request, pk, task.seq) or {}
        if not 0 <= seen.get(pk, -1) <= task.seq:
            return ()
        payload, people = (
            self.policy.sees_payload(self.request.user),
            self.policy.sees_decisions(self.request.user, task),
        )
        return changes_since(task, seen[pk], payload=payload, people=people, using=self.get_using())


def _moved(
    task: ScheduledTask, *, by_days: int | None = None, by_seconds: int | None = None, **given: Any
) -> Sequence[ScheduledTask]:
    return shortcuts.move(task, by=Offset(days=by_days or 0, exact=timedelta(seconds=by_seconds or 0)) or None, **given)


def _of_one(verb: Callable[..., ScheduledTask]) -> Callable[..., Sequence[ScheduledTask]]:
    return lambda task, **given: [verb(task, **given)]
