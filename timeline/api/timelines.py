"""The timeline of an entity, or of a user with all that is theirs: upcoming, foreseen, past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import router
from django.db.models import Model
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.base import TimelineAPI
from timeline.api.fields import can_be_key, find_entity
from timeline.api.pagination import DESCRIBED, ORDERINGS, Page, limit_of, page_of
from timeline.api.schema import answers, described
from timeline.api.serializers import ForeseenSerializer, TaskSerializer
from timeline.features.machines.api import MachineSerializer
from timeline.features.machines.reading import machine_lines
from timeline.lifecycle import FINAL, OPEN
from timeline.models import EntityRef, ScheduledTask, TimelineRun, exact_ref, ref_as
from timeline.models.kin import names_of
from timeline.models.run import TimelineRunQuerySet
from timeline.models.task import ScheduledTaskQuerySet
from timeline.policy import TimelinePolicy
from timeline.reading.in_the_way import asks_in_the_way
from timeline.reading.outlook import foreseen_of
from timeline.reading.reason_texts import keep_told, told_of
from timeline.registry import registry
from timeline.store.index_selection import KindsThere
from timeline.store.multi_query import gather_now

PARTS: Final = ("upcoming", "foreseen", "past")
MOST_RUNS: Final = 100
MOST_MACHINES: Final = 20

_QUERY: Final = [
    OpenApiParameter("part", str, enum=PARTS, description="Only this part; needed to go on with a cursor."),
    OpenApiParameter("cursor", DESCRIBED["cursor"]),
    OpenApiParameter("limit", DESCRIBED["limit"], description="Rows of each part."),
]


class TaskPartSerializer(serializers.Serializer[Any]):
    """A page of tasks."""

    next = serializers.URLField(read_only=True, allow_null=True, help_text="The next page; null: this is the last.")
    results = TaskSerializer(many=True, read_only=True)


class ForeseenPartSerializer(serializers.Serializer[Any]):
    """All that is foreseen."""

    next = serializers.URLField(read_only=True, allow_null=True, help_text="Always null.")
    results = ForeseenSerializer(many=True, read_only=True)


class PartsSerializer(serializers.Serializer[Any]):
    """A timeline: its three parts, or the one asked for."""

    upcoming = TaskPartSerializer(required=False, help_text="Not ended, due already or not; the soonest first.")
    foreseen = ForeseenPartSerializer(required=False, help_text="Without a row yet; the soonest first.")
    past = TaskPartSerializer(required=False, help_text="Ended; the latest due first.")
    machines = MachineSerializer(
        many=True,
        required=False,
        help_text="Where the runs of machines are, the latest first. Left out with `part`, and where there is no machine.",
    )


class PartsView(TimelineAPI):
    """Base: three parts, each a page. Follow-ups are foreseen of the hundred open runs that were recorded last."""

    parameters = ("part", "cursor", "limit")
    serializer_class: type[TaskSerializer] = TaskSerializer
    foreseen_serializer_class: type[ForeseenSerializer] = ForeseenSerializer
    in_the_way: Sequence[Sequence[Any]] = ()

    def answer(
        self,
        tasks: ScheduledTaskQuerySet,
        every_run: TimelineRunQuerySet,
        refs: Sequence[EntityRef],
        there: bool,
        *,
        may_see: bool = True,
    ) -> Response:
        """
        Show the parts asked for. ``refs`` are all names of the entity that timelines are about.

        If it is not ``there``, all the same is asked: the time of an answer must not tell. If not ``may_see``, nothing is
        shown. ``NotFound``: there is nothing to see, and the user may not know whether there could be.
        """
        part = self._part()
        limit_of(self.request)  # What is foreseen is not cut, but a limit that is none is refused all the same.
        if not may_see:
            raise NotFound
        asked = PARTS if part is None else [part]
        kinds = KindsThere(self.get_using())
        pages = {name: self._page(name, tasks, kinds) for name in asked if name != "foreseen"}
        listed = [task for page in pages.values() for task in page.tasks]
        latest, moved = self._runs(every_run, listed, foreseen="foreseen" in asked, machines=part is None)
        found = {name: self._foreseen(latest) if name == "foreseen" else self._shown(pages[name]) for name in asked}
        empty = not any(shown["results"] for shown in found.values())
        may_look = self._may_look(refs)
        if empty and not (there and may_look) and (part is None or not tasks.exists()):
            raise NotFound
        if part is None and registry.machines():
            return Response({**found, "machines": self._machines(moved)})
        return Response(found)

    def _part(self) -> str | None:
        query = self.request.query_params
        part: str | None = query.get("part")
        if part is not None and part not in PARTS:
            raise ValidationError({"part": _("Give one of %(names)s.") % {"names": ", ".join(PARTS)}})
        if "cursor" in query and part in (None, "foreseen"):
            raise ValidationError({"cursor": _("Give part=upcoming or part=past too; best follow the link as it is.")})
        return part

    def _page(self, name: str, tasks: ScheduledTaskQuerySet, kinds: KindsThere) -> Page:
        states, ordering = (OPEN, ORDERINGS[0]) if name == "upcoming" else (FINAL, ORDERINGS[1])
        rows = tasks.defer("payload", "result", "error")
        return page_of(rows, self.request, ordering, states, kinds=kinds, part=name)

    def _shown(self, page: Page) -> dict[str, Any]:
        context = {"view": self, "request": self.request, "in_the_way": self.in_the_way}
        return {"next": page.next, "results": self.serializer_class(page.tasks, many=True, context=context).data}

    def _runs(
        self, every_run: TimelineRunQuerySet, listed: list[ScheduledTask], *, foreseen: bool, machines: bool
    ) -> tuple[list[TimelineRun], list[TimelineRun]]:
        """The latest open runs and those of machines; the same statement reads the time, and why the listed tasks are so."""
        using, user = self.get_using(), self.request.user
        asked = [(every_run.open(), MOST_RUNS)] if foreseen else []
        asked += [(every_run.of_machines(), MOST_MACHINES)] if machines and registry.machines() else []
        is_ours = type(self.policy).runs_seen is TimelinePolicy.runs_seen  # A host's own reads them itself.
        latest = [self.policy.latest_runs(runs, user, most) for runs, most in asked] if is_ours else []
        kept = asks_in_the_way(using=using) if any(task.is_open for task in listed) else []
        self.now, [told, *read] = gather_now([told_of(listed, using=using), *latest, *kept], using=using)
        read, self.in_the_way = read[: len(latest)], read[len(latest) :]
        keep_told(listed, told)
        if is_ours:
            found = [self.policy.seen_of(_latest_first(runs), user, using=using) for runs in read]
        else:
            found = [self.policy.runs_seen(runs, user, most) for runs, most in asked]
        both = iter(found)
        return next(both, []) if foreseen else [], next(both, [])

    def _foreseen(self, latest: list[TimelineRun]) -> dict[str, Any]:
        using = self.get_using()
        items = [
            {
                "task": outlook.task_key,
                "title": registry.told(outlook.task_key)[0],
                "timeline": run.timeline,
                "entity": run.entity_ref._asdict() if run.entity_label else None,
                "run": run.pk,
                "expected_at": outlook.expected_at,
                "why": outlook.why,
            }
            for run, outlook in foreseen_of(latest, now=self.now, using=using)
        ]
        return {"next": None, "results": self.foreseen_serializer_class(items, many=True).data}

    def _machines(self, latest: list[TimelineRun]) -> list[Any]:
        lines = machine_lines(latest, people=self._sees_people, using=self.get_using())
        return list(MachineSerializer(lines, many=True, context={"view": self}).data)

    def _sees_people(self, run: TimelineRun) -> bool:
        about = {"entity_label": run.entity_label, "entity_id": run.entity_id}
        return self.policy.sees_decisions(
            self.request.user, ScheduledTask(run=run, task_key=f"{run.timeline}.", **about)
        )

    def _may_look(self, refs: Sequence[EntityRef]) -> bool:
        using, user = self.get_using(), self.request.user
        return any(
            self.policy.sees_timeline(user, known.name, ref, using=using)
            for ref in refs
            for known in registry
            if known.label == ref.label or known.cls.owner
        )


class EntityTasks(PartsView):
    @described(operation_id="entity_tasks", parameters=_QUERY, responses=answers(404, ok=PartsSerializer))
    def get(self, request: Request, label: str, id: str) -> Response:
        """Show an entity's timeline. It has tasks that have not ended, those foreseen, and those that have ended."""
        if "\x00" in label + id:  # Which no database looks for.
            raise NotFound
        ref = EntityRef(label, id)
        using = self.get_using()
        runs = TimelineRun.objects.using(using).for_entity(ref)
        every = names_of(ref, using=using)
        names = [name for name in every if registry.knows(name.label)]
        there = [name for name in names if find_entity(name, using=using) is not None]
        may_see = self.policy.may_see(request.user, every, using=using)
        return self.answer(self.get_queryset().for_entity(ref), runs, names, bool(there), may_see=may_see)


class UserTasks(PartsView):
    """Of one user: about them, and about what a timeline declares as theirs."""

    @described(operation_id="user_tasks", parameters=_QUERY, responses=answers(404, ok=PartsSerializer))
    def get(self, request: Request, id: str) -> Response:
        """Show a user's timeline. It has tasks that have not ended, those foreseen, and those that have ended."""
        model = get_user_model()  # Accounts are where the site has them, whichever database the tasks are in.
        if (ref := exact_ref(model._meta.label_lower, id)) is None or not can_be_key(model, ref.id):
            raise NotFound
        asker: Any = self.request.user  # Who was read already.
        is_asker = isinstance(asker, model) and str(asker.pk) == ref.id
        user = asker if is_asker else find_entity(ref, using=router.db_for_read(model))
        return self.answer_of(model(pk=ref.id) if user is None else user, there=user is not None)

    def answer_of(self, user: Model, *, there: bool = True) -> Response:
        """Show what is theirs, as far as the one who asks may see it."""
        using = self.get_using()
        runs = self.policy.runs_concerning(TimelineRun.objects.using(using).all(), user)
        tasks = self.policy.concerning(self.get_queryset(), user)
        names = names_of(ref_as(user, get_user_model()), using=user._state.db or using)
        may_see = self.policy.may_see_of(self.request.user, user, using=using)
        return self.answer(tasks, runs, names, there, may_see=may_see)


class MyTasks(UserTasks):
    @described(operation_id="my_tasks", parameters=_QUERY, responses=answers(404, ok=PartsSerializer))
    def get(self, request: Request) -> Response:  # type: ignore[override]
        """Show your own timeline. It has tasks that have not ended, those foreseen, and those that have ended."""
        if not isinstance(request.user, get_user_model()):
            raise NotFound
        return self.answer_of(request.user)

    def _may_look(self, refs: Sequence[EntityRef]) -> bool:
        return True  # That there is nothing of their own is no secret to anybody.


def _latest_first(runs: Sequence[TimelineRun]) -> list[TimelineRun]:
    return sorted(runs, key=lambda run: run.pk, reverse=True)
