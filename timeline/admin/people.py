"""The pages of what waits for people: all of it, and one event said by who is asked for it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.admin.looking import look_at, may_look
from timeline.admin.naming import Called, Named, actor_of, breakable, called, named
from timeline.admin.pages import Pages, policy_of
from timeline.admin.saying import SayForm
from timeline.admin.wording import WORDINGS
from timeline.clocks import story_now
from timeline.exceptions import TimelineError
from timeline.lifecycle import ReasonCode
from timeline.models import EntityRef, TimelineRun
from timeline.models.entities import load_entities
from timeline.operations.emitting import Emission, emit
from timeline.policy import APPROVALS
from timeline.reading.approvals import Undecided
from timeline.reading.people import MOST_RESTING, Asking, resting, waiting_for_people
from timeline.registry import registry
from timeline.timing import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django_stubs_ext import StrPromise

    from timeline.models import ScheduledTask
    from timeline.policy import Action
    from timeline.reading.machine_pictures import MachinePicture
    from timeline.reading.machines import MachineLine


class Waiting(NamedTuple):
    """
    Something that waits for people, as the page shows it.

    Args:
        entity: Whose it is.
        timeline, key: Of its run.
        state: Of a machine; empty: it is a task.
        since, until: From when and until when; None: without end.
        is_late: Whether that is over.
        rights: Who may answer.
        buttons: Events that the user may say, each with its address.
        task, called: What asks for approval; None: it is a machine.
        verbs: What the user may do with the task, with the words of its buttons.
        is_held: Whether the task is on hold.
    """

    entity: Named
    timeline: str
    key: str
    state: str
    since: datetime
    until: datetime | None
    is_late: bool
    rights: list[str]
    buttons: list[tuple[str, str]]
    task: ScheduledTask | None = None
    called: Called | None = None
    verbs: Sequence[tuple[Action, StrPromise]] = ()
    is_held: bool = False


class PeoplePages(Pages):
    """Who may see all tasks sees what waits for people; who is asked for an event, or for approval, may answer."""

    def people_view(self, request: HttpRequest) -> HttpResponse:
        """Show what waits for people, those first that have waited for longest."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        policy, using, now, visible = policy_of(request), self.alias, self.now_of(request), self.visible(request)
        timelines = [known.name for known in registry if known.waiting_in or known.approvals]
        timeline = request.GET.get("machine", "")
        if timeline and timeline not in timelines:
            raise Http404(_("There is no such timeline."))
        page = waiting_for_people(
            timeline,
            may_say=lambda run: policy.asked_of(request.user, run, using=using),
            tasks=visible,
            after=_place(request.GET.get("after", "")),
            now=now,
        )
        # A policy of the host's may show some of the runs only; ours reads nothing for this.
        found = [each for each in page.waiting if isinstance(each, Undecided) or self._sees(request, each.run)]
        entities = load_entities({_ref_of(each) for each in found}, using=using)
        names = {ref: named(ref, entities.get(ref), self.admin_site.name) for ref in map(_ref_of, found)}
        at, key = page.last or (None, None)
        context = {
            "waiting": [self._waiting(request, each, names[_ref_of(each)], now) for each in found],
            "timeline": timeline,
            "timelines": timelines,
            "next": at and urlencode({"machine": timeline, "after": f"{at:%Y-%m-%dT%H:%M:%S.%f%z}/{key}"}),
            "resting": min(rest := resting(visible), MOST_RESTING),
            "has_more_resting": rest > MOST_RESTING,
            "in_doubt": f"{self.address('changelist')}?{urlencode({'reason': ReasonCode.IN_DOUBT.value})}",
        }
        return self.page(request, "people", pgettext("timeline", "Waiting for people"), now, context)

    def _sees(self, request: HttpRequest, run: TimelineRun) -> bool:
        return policy_of(request).sees_timeline(request.user, run.timeline, run.entity_ref, using=self.alias)

    def _waiting(self, request: HttpRequest, each: Asking | Undecided, entity: Named, now: datetime) -> Waiting:
        if isinstance(each, Asking):
            return self._asking(each, entity, now)
        task = each.task
        may = [action for action in policy_of(request).actions(request.user, task) if action in APPROVALS]
        return Waiting(
            entity=entity,
            timeline=task.timeline,
            key=task.run.key if task.run is not None else "",
            state="",
            since=each.since,
            until=each.until,
            is_late=False,
            rights=[breakable(each.right)],
            buttons=[],
            task=task,
            called=called(task.full_key),
            verbs=[(action, WORDINGS[action].verb) for action in may],
            is_held=each.is_held,
        )

    def _asking(self, each: Asking, entity: Named, now: datetime) -> Waiting:
        run = each.run
        return Waiting(
            entity=entity,
            timeline=run.timeline,
            key=run.key,
            state=run.state,
            since=run.state_at or now,
            until=each.due_at,
            is_late=each.due_at is not None and each.due_at <= now,
            rights=_rights_of(run),
            buttons=self.buttons_of(run, each.events),
        )

    def buttons_of(self, run: TimelineRun, events: list[str]) -> list[tuple[str, str]]:
        """Events, each with the address where it is said; of the run as it is now, and not as it may come there again."""
        return [
            (event, f"{self.address('say')}?{urlencode({'run': run.pk, 'moves': run.moves, 'event': event})}")
            for event in events
        ]

    def with_buttons(
        self, request: HttpRequest, lines: Iterable[tuple[MachineLine, MachinePicture | None]]
    ) -> list[tuple[MachineLine, MachinePicture | None, list[tuple[str, str]]]]:
        """The machines of an entity, each with what the user may say of it."""
        policy, using = policy_of(request), self.alias
        return [
            (line, picture, self.buttons_of(line.run, policy.asked_of(request.user, line.run, using=using)))
            for line, picture in lines
        ]

    def say_view(self, request: HttpRequest) -> HttpResponse:
        """Ask what has to be known for an event; and say it, if the run is still where it was when the page was opened."""
        run, event, moves = self._run_asked(request)
        policy, using, ref = policy_of(request), self.alias, run.entity_ref
        about = look_at(ref, using=using)
        seen = may_look(about, self.visible(request), policy, request.user)
        if not seen or not policy.may_ask(request.user, run, event, using=using):
            raise Http404(_("There is nothing to be said."))
        definition = registry.timeline(run.timeline)
        form = SayForm(request.POST if request.method == "POST" else None, declared=definition.payloads.get(event))
        back = f"{self.address('entity')}?{urlencode(ref._asdict())}"
        if request.method == "POST" and form.is_valid():
            try:
                done = self._emit_said(run, event, moves, form, actor_of(request.user))
            except TimelineError as error:
                messages.error(request, str(error))
            else:
                said = _("Recorded: %(event)s.") if done.recorded else _("It was recorded already: %(event)s.")
                messages.success(request, said % {"event": event})
                return HttpResponseRedirect(back)
        context = {
            "form": form,
            "has_errors": bool(form.errors),
            "event": event,
            "run": run,
            "is_old": run.moves != moves or not run.is_open,
            "entity": named(ref, about.entity, self.admin_site.name),
            "back": back,
        }
        return self.page(request, "say", event, story_now(using), context)

    def _run_asked(self, request: HttpRequest) -> tuple[TimelineRun, str, int]:
        """
        The run, the event, and how often the run had moved when it was asked.

        Raises:
            Http404: if that makes no sense.
        """
        given = request.GET
        with suppress(ValueError, TimelineRun.DoesNotExist):
            run = TimelineRun.objects.using(self.alias).get(pk=UUID(given.get("run", "")))
            return run, given.get("event", ""), int(given.get("moves", ""))
        raise Http404(_("There is nothing to be said."))

    def _emit_said(self, run: TimelineRun, event: str, moves: int, form: SayForm, actor: str) -> Emission:
        """Emit it. Sent twice, it is recorded once: its key is of this stay in the state."""
        return emit(
            name=event,
            entity=run.entity_ref,
            key=f"said:{run.pk.hex}:{moves}",
            payload=form.payload(),
            actor=actor,
            occurred_at=None,
            machine=run.timeline,
            visit=(run, moves),
            using=self.alias,
        )


def _ref_of(each: Asking | Undecided) -> EntityRef:
    return each.run.entity_ref if isinstance(each, Asking) else each.task.entity_ref


def _rights_of(run: TimelineRun) -> list[str]:
    """Who may say one of the events that a run asks for in its state."""
    definition = registry.timeline(run.timeline)
    asks = [definition.asks[event] for event in definition.asked_in.get(run.state, ())]
    rights = list(map(breakable, sorted({name for ask in asks for name in ask.permissions})))
    return [*rights, pgettext("timeline", "the owner")] if any(ask.owner for ask in asks) else rights


def _place(text: str) -> tuple[datetime, UUID] | None:
    """Where a page begins; None: where that makes no sense, at the beginning."""
    with suppress(ValueError):
        at, _slash, key = text.partition("/")
        moment = datetime.fromisoformat(at)
        return (moment, UUID(key)) if moment.utcoffset() is not None and EARLIEST <= moment < LATEST else None
    return None
