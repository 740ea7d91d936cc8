"""``TaskAdmin``: the pages, where they are, and who may open them. What they show is put together by its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import MethodType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.http import require_http_methods, require_safe

from timeline.admin.act_on_all import MatchingPages
from timeline.admin.actions import WORDINGS, obstacle, wordings
from timeline.admin.attention import AttentionPages
from timeline.admin.dead_letters import DeadLetterPages, RedrivePages
from timeline.admin.entities import answer, in_order_of_start, machines_at, picture, read_entity, timeline_of
from timeline.admin.foreseen_list import by_the_clock, followers_of
from timeline.admin.health import HealthPages
from timeline.admin.journal import JournalPages
from timeline.admin.list_query import asked
from timeline.admin.pages import FeaturePage, FeaturePages, policy_of
from timeline.admin.references import named, own_page_of
from timeline.admin.site_index import IndexPages
from timeline.admin.subject import Reader, accounts, look_at, may_look
from timeline.admin.task_list import chips, filters, listing, row_of
from timeline.admin.task_page import place_in_log, telling
from timeline.admin.timeline_pages import TimelinePages
from timeline.admin.user_pages import FindPages, belongings_of, may_own, told_belongings
from timeline.features.holds.pages import releasable
from timeline.features.machines.lines import with_buttons
from timeline.features.on_failure.store import failure_of  # of on_failure
from timeline.features.steps.pages import parts_of, stepping
from timeline.features.steps.reading import steps_of_task
from timeline.features.waits.reading import wait_of
from timeline.lifecycle import State
from timeline.live.pages import watched
from timeline.live.versions import EVERYTHING, EverythingAndWorkers, OneEntity, OneTask
from timeline.models import ScheduledTask, exact_ref
from timeline.models.entities import load_entities
from timeline.policy import POSSIBLE, Action
from timeline.reading.dead_letters import fixed_since
from timeline.reading.in_the_way import asks_in_the_way
from timeline.reading.log_parts import asked_of_log, log_part
from timeline.reading.outlook import foreseen_of
from timeline.registry import registry

if TYPE_CHECKING:
    from django.urls import URLPattern
    from django_stubs_ext import StrPromise

    from timeline.live.pages import View
    from timeline.live.versions import Subject
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import TimelinePolicy, User


class TaskAdmin(
    AttentionPages,
    FindPages,
    HealthPages,
    JournalPages,
    IndexPages,
    MatchingPages,
    RedrivePages,
    TimelinePages,
    DeadLetterPages,
):
    """Upcoming events, a task, and the timeline of an entity. Changes go through the shortcuts; nothing is edited here."""

    def get_urls(self) -> list[URLPattern]:
        """The pages there are; Django's own for adding, deleting and history are none of them."""
        forms = require_http_methods(["GET", "HEAD", "POST"])
        name = "timeline_scheduledtask"

        def wrap(view: View) -> Any:
            return self.admin_site.admin_view(self.asked_rightly(view))

        def shows(view: View, subject_of: Callable[..., Subject] = _everything) -> Any:
            return watched(wrap(view), subject_of, lambda: self.alias)

        def of_feature(pages: FeaturePages, page: FeaturePage) -> URLPattern:
            view = MethodType(page.view, pages)
            asked = shows(view) if page.is_live else wrap(view)
            allowed: View = forms(asked) if page.takes_forms else require_safe(asked)
            return path(page.path, allowed, name=f"{name}_{page.name}")

        return [
            path("", require_safe(shows(self.changelist_view)), name=f"{name}_changelist"),
            path("attention/", require_safe(shows(self.attention_view, _workers_too)), name=f"{name}_attention"),
            path("dead/", require_safe(shows(self.dead_view)), name=f"{name}_dead"),
            path("dead/redrive/", forms(wrap(self.redrive_view)), name=f"{name}_redrive"),
            path("inventory/", require_safe(shows(self.inventory_view)), name=f"{name}_inventory"),
            path(
                "inventory/<str:name>/", require_safe(shows(self.timeline_view, _timeline_of)), name=f"{name}_timeline"
            ),
            path("health/", require_safe(shows(self.health_view, _workers_too)), name=f"{name}_health"),
            path("journal/", require_safe(wrap(self.journal_view)), name=f"{name}_journal"),
            path("find/", require_safe(wrap(self.find_view)), name=f"{name}_find"),
            path("entity/", require_safe(shows(self.entity_view, _entity_of)), name=f"{name}_entity"),
            path("all/", forms(wrap(self.matching_view)), name=f"{name}_matching"),
            path("act/", forms(self.keeping_what_was_typed(wrap(self.act_view))), name=f"{name}_act"),
            *(of_feature(pages, page) for pages in self.of_features for page in pages.ROUTES),
            path("<uuid:object_id>/change/", require_safe(shows(self.change_view, _task_of)), name=f"{name}_change"),
        ]

    def get_queryset(self, request: HttpRequest) -> ScheduledTaskQuerySet:
        """The tasks that the user may see."""
        return self.visible(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: rows are made by timelines."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: ScheduledTask | None = None) -> bool:
        """Nobody: what may be done, the actions do."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ScheduledTask | None = None) -> bool:
        """Nobody: rows end, and are pruned."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: ScheduledTask | None = None) -> bool:
        """Who has Django's permission, or sees any row by the policy."""
        if request.user.has_perm("timeline.view_scheduledtask"):
            return True
        known: dict[str, bool] = request.__dict__.setdefault("_timeline_sees_any", {})
        if (found := known.get(self.alias)) is None:
            found = known[self.alias] = self.visible(request).exists()
        return found

    def has_module_permission(self, request: HttpRequest) -> bool:
        """As above; decides whether the index names the page."""
        return self.has_view_permission(request)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list; with ``part`` just what changes, for the light refresh."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        question, policy = asked(request.GET), policy_of(request)
        now, kept = self.now_and(request, asks_in_the_way(using=self.alias))
        zone, reader = timezone.get_current_timezone(), Reader(policy, request.user)
        site, visible = self.admin_site.name, self.visible(request)
        may_ask = reader.payload or not question.payload  # Who may not read payloads would find out what they say.
        question = question if may_ask else replace(question, payload=None)
        shown = listing(visible, question, kept=kept, now=now, zone=zone, reader=reader, site=site)
        rows = [row for band in shown["bands"] for row in band.rows]
        may_list = request.user.has_perm("timeline.view_scheduledtask")
        context = {
            **shown,
            # Whose own rows are found first has as many statements as a page may take.
            **(followers_of(rows, question, reader, now=now, using=self.alias) if may_list else {}),
            "by_the_clock": by_the_clock(question, now=now) if may_list else None,
            "may_list": may_list,
            "question": question,
            "where": question.where(),
            "chips": chips(question),
            "reads_payload": reader.payload,
            "is_left_out": not may_ask,
            "chosen": "chosen" in request.GET,
            "more": [link for pages in self.of_features for link in pages.beside_list(request)],
            "filters": filters(question),
            "actions": _verbs(_possible(shown["states"], policy, request.user)),
            "login": self.login_for(self.address("changelist") + question.where()),
        }
        part = "part" in request.GET
        return self.page(
            request, "_upcoming" if part else "upcoming", pgettext("timeline", "Upcoming events"), now, context
        )

    def change_view(  # type: ignore[override]
        self, request: HttpRequest, object_id: UUID, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show one task."""
        visible, reader = self.visible(request), Reader(policy_of(request), request.user)
        task = visible.filter(pk=object_id).select_related("run", "cause").first()
        if task is None:
            raise Http404(_("There is no such task."))
        before, ref = place_in_log(request.GET), task.entity_ref
        revisions = visible.filter(Q(previous=task.pk) | Q(pk=task.previous_id))
        now, [revised, *found] = self.now_and(
            request, [revisions, *asked_of_log(task, before=before, using=self.alias)]
        )
        log = log_part(*found, is_latest=before is None)
        entity = named(ref, load_entities([ref], using=self.alias).get(ref), self.admin_site.name)
        steps = steps_of_task(task, using=self.alias, results=reader.payload)
        parts = parts_of(task, steps, now)
        told = telling(task, log, reader, steps=steps, parts=parts, asked=request.GET, now=now, using=self.alias)
        carried_on = {other.previous_id for other in revised}
        context = {
            **told,
            "revisions": sorted(revised, key=lambda other: other.revision),
            **stepping(task, steps, reader),
            "row": row_of(task, entity, now, reader)._replace(
                fixed=fixed_since([task], using=self.alias).get(task.pk, "")
            ),
            "wait": wait_of(task, using=self.alias),
            "releases": releasable(request, task, using=self.alias),
            "failure": failure_of(task, visible),  # of on_failure
            "alike": self._alike(task) if task.pk not in carried_on else "",
            "actions": _verbs(action for action in _buttons() if not obstacle(action, task, reader, carried_on)),
        }
        return self.page(request, "task", context["row"].called.title or task.full_key, now, context)

    def _alike(self, task: ScheduledTask) -> str:
        """Where those are that failed as a dead letter did; empty: it is none."""
        is_dead = task.state == State.DISCARDED and task.fingerprint
        return f"{self.address('dead')}?{urlencode({'group': task.fingerprint})}" if is_dead else ""

    def entity_view(self, request: HttpRequest) -> HttpResponse:
        """Show an entity's timeline."""
        ref = exact_ref(request.GET.get("label", ""), request.GET.get("id", ""))
        visible, policy = self.visible(request), policy_of(request)
        about = None if ref is None else look_at(ref, using=self.alias)
        if about is None or not may_look(about, visible, policy, request.user):
            raise Http404(_("There is no such entity."))
        zone, reader = timezone.get_current_timezone(), Reader(policy, request.user)
        ref, entity, using = about.ref, about.entity, self.alias
        owner, labels = may_own(entity, reader, using)
        read = read_entity(about, visible, reader, keys=bool(labels), top=self.asked_at_the_top(request))
        self.keep_the_top(request, read.top)
        now, runs = read.now, [run for run in in_order_of_start(read.runs) if run.is_open]
        theirs = belongings_of(owner, labels, read.task_keys, visible, reader, kept=read.kept)
        entities = {**theirs.entities, **about.there}
        foreseen = foreseen_of([*runs, *theirs.runs], now=now, using=using, entities=entities)
        own = {run.pk for run in runs}
        told = timeline_of(about, read, reader, [outlook for run, outlook in foreseen if run.pk in own], using=using)
        told |= told_belongings(
            theirs, [pair for pair in foreseen if pair[0].pk not in own], now=now, site=self.admin_site.name
        )
        drawn = [*told.pop("items"), *told.pop("theirs")]
        context = {
            **told,
            **picture(drawn, request.GET, holds=read.holds, now=now, zone=zone),
            "machines_at": machines_at(in_order_of_start(read.runs), now=now, zone=zone),
            "answer": answer(drawn, holds=read.holds, now=now, zone=zone),
            "machines": with_buttons(self, request, told["machines"]),
            "entity": named(ref, entity, self.admin_site.name),
            "is_gone": about.is_gone,
            "customer_page": policy.customer_page(request.user, entity) if entity is not None else "",
            "own_page": own_page_of(entity, self, request, using=using),
            "ref": ref,
            "may_try": bool(ref.label) and request.user.has_perm("timeline.view_scheduledtask"),
            "may_hold": bool(ref.label) and registry.knows(ref.label) and policy.may_hold(request.user),
        }
        return self.page(request, "entity", context["entity"].name, now, context)


def _everything(_request: HttpRequest, **_named: object) -> Subject:
    return EVERYTHING


def _workers_too(_request: HttpRequest) -> Subject:
    return EverythingAndWorkers()


def _timeline_of(_request: HttpRequest, name: str) -> Subject:  # noqa: ARG001 (as the view takes it)
    return EVERYTHING


def _task_of(_request: HttpRequest, object_id: UUID) -> Subject:
    return OneTask(object_id)


def _entity_of(request: HttpRequest) -> Subject:
    """The system has any number of tasks; of a user, what is theirs is shown, too: these pages hear of all."""
    ref = exact_ref(request.GET.get("label", ""), request.GET.get("id", ""))
    return EVERYTHING if ref is None or not ref.label or ref.label in accounts() else OneEntity(*ref)


def _buttons() -> list[Action]:
    """To decide is about a part of it, so that its buttons stand there."""
    return [action for action in Action if action in wordings()]


def _possible(states: set[str], policy: TimelinePolicy, user: User) -> list[Action]:
    """What the user may do with tasks in these states: with one of them at least."""
    return [action for action in WORDINGS if POSSIBLE[action] & states and policy.allows(user, action)]


def _verbs(actions: Iterable[Action]) -> list[tuple[Action, StrPromise]]:
    return [(action, wordings()[action].verb) for action in actions]
