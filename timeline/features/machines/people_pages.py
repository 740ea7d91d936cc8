"""The pages of what waits for people: all of it, and one event said by who is asked for it."""

from __future__ import annotations

import json
import types
from contextlib import suppress
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Union, get_args, get_origin
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from timeline.admin.actions import WORDINGS
from timeline.admin.forms import REASON
from timeline.admin.pages import Pages, policy_of
from timeline.admin.references import Called, Named, actor_of, breakable, called, named
from timeline.admin.subject import look_at, may_look
from timeline.definition.payload_types import members_of
from timeline.exceptions import TimelineError
from timeline.features.machines.people import MOST_RESTING, Asking, resting, waiting_for_people
from timeline.features.waits.reading import Undecided
from timeline.lifecycle import ReasonCode
from timeline.models import EntityRef, TimelineRun
from timeline.models.entities import load_entities
from timeline.operations.emit import Emission, emit
from timeline.policy import APPROVALS
from timeline.registry import registry
from timeline.timing import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django_stubs_ext import StrPromise

    from timeline.features.machines.pictures import MachinePicture
    from timeline.features.machines.reading import MachineLine
    from timeline.models import ScheduledTask
    from timeline.policy import Action


_EMPTY: Final[tuple[object, ...]] = (None, "")


class SayForm(forms.Form):
    """What has to be known for an event. ``declared``: the type of its payload; None: no type, so a reason is asked for."""

    def __init__(self, *args: Any, declared: type | None, **options: Any) -> None:
        super().__init__(*args, **options)
        members = {"reason": (str, True)} if declared is None else members_of(declared)
        self._json = {name for name, (kind, _needed) in members.items() if _plain(kind) is None}
        for name, (kind, needed) in members.items():
            self.fields[name] = _field(name, kind, needed)

    def clean(self) -> dict[str, Any]:
        """Read what is written as JSON."""
        said: dict[str, Any] = super().clean() or {}
        for name in self._json & said.keys():
            try:
                said[name] = json.loads(said[name]) if said[name] else None
            except (ValueError, RecursionError):
                self.add_error(name, _("This is no JSON."))
        return said

    def payload(self) -> dict[str, Any]:
        """As the event takes it: what was left empty is left out."""
        return {name: value for name, value in self.cleaned_data.items() if value not in _EMPTY or value is False}


def _plain(kind: Any) -> Any:
    """The type without ``None``; None: one that no field of a form is for."""
    if get_origin(kind) in (Union, types.UnionType):
        kinds = [each for each in get_args(kind) if each is not types.NoneType]
        return _plain(kinds[0]) if len(kinds) == 1 else None
    known = kind in (str, int, float, bool) or get_origin(kind) is Literal
    return kind if known or (isinstance(kind, type) and issubclass(kind, Enum)) else None


def _field(name: str, kind: Any, needed: bool) -> forms.Field:
    plain, label = _plain(kind), name.replace("_", " ")
    if name == "reason" and plain is str:
        said = pgettext_lazy("timeline", "Reason")
        return forms.CharField(label=said, required=needed, max_length=200, help_text=REASON)
    if plain is bool:
        return forms.BooleanField(label=label, required=False)
    if plain is int:
        return forms.IntegerField(label=label, required=needed)
    if plain is float:
        return forms.FloatField(label=label, required=needed)
    if plain is str:
        return forms.CharField(label=label, required=needed, max_length=1000)
    if plain is None:
        return forms.CharField(
            label=label, required=needed, help_text=gettext_lazy("As JSON."), widget=forms.Textarea(attrs={"rows": 4})
        )
    values = get_args(plain) if get_origin(plain) is Literal else [member.value for member in plain]
    by_text = {str(value): value for value in values}
    choices = [("", "–"), *((text, text) for text in by_text)]
    return forms.TypedChoiceField(
        label=label, required=needed, choices=choices, coerce=lambda text: by_text[text], empty_value=""
    )


class WaitingPerson(NamedTuple):
    """
    Something that waits for people, as the page shows it.

    Args:
        state: Of a machine; empty: it is a task.
        since, until: From when and until when; None: without end.
        is_late: Whether that is over.
        rights: Who may answer.
        buttons: Events that the user may say, each with its address.
        task, called: What asks for approval; None: it is a machine.
        verbs: What the user may do with the task, with the words of its buttons.
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

    def _waiting(self, request: HttpRequest, each: Asking | Undecided, entity: Named, now: datetime) -> WaitingPerson:
        if isinstance(each, Asking):
            return self._asking(each, entity, now)
        task = each.task
        may = [action for action in policy_of(request).actions(request.user, task) if action in APPROVALS]
        return WaitingPerson(
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

    def _asking(self, each: Asking, entity: Named, now: datetime) -> WaitingPerson:
        run = each.run
        return WaitingPerson(
            entity=entity,
            timeline=run.timeline,
            key=run.key,
            state=registry.titled_in(run.timeline, run.state),
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
            raise Http404(_("There is nothing here that you can say."))
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
            "state": definition.titled(run.state),
            "is_old": run.moves != moves or not run.is_open,
            "entity": named(ref, about.entity, self.admin_site.name),
            "back": back,
        }
        return self.page(request, "say", event, self.now_of(request), context)

    def _run_asked(self, request: HttpRequest) -> tuple[TimelineRun, str, int]:
        """The run, the event, and how often the run had moved when it was asked. Raises ``Http404`` if that makes no sense."""
        given = request.GET
        with suppress(ValueError, TimelineRun.DoesNotExist):
            run = TimelineRun.objects.using(self.alias).get(pk=UUID(given.get("run", "")))
            return run, given.get("event", ""), int(given.get("moves", ""))
        raise Http404(_("There is nothing here that you can say."))

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
