"""The pages of what waits for people: all of it, and one event said by who is asked for it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.admin.looking import look_at, may_look
from timeline.admin.naming import Named, actor_of, named
from timeline.admin.pages import Pages, policy_of
from timeline.admin.saying import SayForm
from timeline.clocks import story_now
from timeline.exceptions import TimelineError
from timeline.models import TimelineRun
from timeline.models.entities import load_entities
from timeline.operations.emitting import Emission, emit
from timeline.reading.people import Asking, waiting_for_people
from timeline.registry import registry
from timeline.timing import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.reading.machine_pictures import MachinePicture
    from timeline.reading.machines import MachineLine


class Waiting(NamedTuple):
    """A run that waits for people, as the page shows it."""

    asking: Asking
    entity: Named
    url: str
    buttons: list[tuple[str, str]]
    is_late: bool


class PeoplePages(Pages):
    """Who may see all tasks sees what waits for people; who is asked for an event may say it."""

    def people_view(self, request: HttpRequest) -> HttpResponse:
        """Show what waits for people, those first that have waited for longest."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        policy, using, now = policy_of(request), self.alias, story_now(self.alias)
        machines = [known.name for known in registry if known.waiting_in]
        machine = request.GET.get("machine", "")
        if machine and machine not in machines:
            raise Http404(_("There is no such machine."))
        found, has_more = waiting_for_people(
            machine,
            may_say=lambda run: policy.asked_of(request.user, run, using=using),
            after=_place(request.GET.get("after", "")),
            using=using,
        )
        last = found[-1].run if has_more else None
        # A policy of the host's may show some of them only; ours reads nothing for this.
        sees = policy.sees_timeline
        found = [each for each in found if sees(request.user, each.run.timeline, each.run.entity_ref, using=using)]
        entities = load_entities({each.run.entity_ref for each in found}, using=using)
        context = {
            "waiting": [self._waiting(each, entities.get(each.run.entity_ref), now) for each in found],
            "machine": machine,
            "machines": machines,
            "next": last
            and urlencode({"machine": machine, "after": f"{last.state_at:%Y-%m-%dT%H:%M:%S.%f%z}/{last.pk}"}),
        }
        return self.page(request, "people", pgettext("timeline", "Waiting for people"), now, context)

    def _waiting(self, each: Asking, entity: Any, now: datetime) -> Waiting:
        ref = each.run.entity_ref
        return Waiting(
            each,
            named(ref, entity, self.admin_site.name),
            f"{self.address('entity')}?{urlencode(ref._asdict())}",
            self.buttons_of(each.run, each.events),
            each.due_at is not None and each.due_at <= now,
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


def _place(text: str) -> tuple[datetime, UUID] | None:
    """Where a page begins; None: where that makes no sense, at the beginning."""
    with suppress(ValueError):
        at, _slash, key = text.partition("/")
        moment = datetime.fromisoformat(at)
        return (moment, UUID(key)) if moment.utcoffset() is not None and EARLIEST <= moment < LATEST else None
    return None
