"""The pages of what waits for people: all of it, and one event said by who is asked for it."""

from __future__ import annotations

import json
import types
from contextlib import suppress
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from timeline.admin.bar import MOST, BarPlace, counts_kept
from timeline.admin.forms import REASON
from timeline.admin.pages import FeaturePage, FeaturePages, policy_of
from timeline.admin.references import actor_of, named
from timeline.admin.subject import look_at, may_look
from timeline.definition.payload_types import members_of
from timeline.exceptions import TimelineError
from timeline.features.machines.lines import PersonLines
from timeline.features.machines.people import Asking, Place, waiting_for_people
from timeline.features.machines.takes import Item, find_item, hand_over, may_answer, take, taken_by
from timeline.features.waits.reading import Undecided
from timeline.lifecycle import ReasonCode
from timeline.models import EntityRef, TimelineRun
from timeline.models.entities import load_entities
from timeline.models.machine_rows import MAX_HOLDER
from timeline.operations.emit import Emission, emit
from timeline.registry import registry
from timeline.timing import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_EMPTY: Final[tuple[object, ...]] = (None, "")


class HandOverForm(forms.Form):
    """To whom something goes."""

    to = forms.CharField(
        label=gettext_lazy("To whom"), max_length=MAX_HOLDER, help_text=gettext_lazy("Their user name, as they log in.")
    )


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


class PeoplePages(FeaturePages):
    """Who may see all tasks sees what waits for people; who is asked for an event, or for approval, may answer and take it."""

    def people_view(self, request: HttpRequest) -> HttpResponse:
        """Show what waits for people, those first whose time is up first; or only what the user has taken."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        policy, using, now, visible = policy_of(request), self.alias, self.now_of(request), self.visible(request)
        timelines = [known.name for known in registry if known.waiting_in or known.approvals]
        timeline, mine = request.GET.get("machine", ""), bool(request.GET.get("mine"))
        if timeline and timeline not in timelines:
            raise Http404(_("There is no such timeline."))
        page = waiting_for_people(
            timeline,
            may_say=lambda run: policy.asked_of(request.user, run, using=using),
            tasks=visible,
            after=_place(request.GET.get("after", "")),
            among=taken_by(actor_of(request.user), using=using) if mine else None,
            now=now,
        )
        # A policy of the host's may show some of the runs only; ours reads nothing for this.
        found = [each for each in page.waiting if isinstance(each, Undecided) or self._sees(request, each.run)]
        entities = load_entities({_ref_of(each) for each in found}, using=using)
        names = {ref: named(ref, entities.get(ref), self.admin_site.name) for ref in map(_ref_of, found)}
        lines = PersonLines.of(self, request, found, now)
        waiting = [lines.line(each, names[_ref_of(each)]) for each in found]
        given = {"machine": timeline} | ({"mine": "1"} if mine else {})
        context = {
            "waiting": [each for each in waiting if each.is_mine or not mine],
            "timeline": timeline,
            "timelines": timelines,
            "mine": mine,
            "here": urlencode(given),
            "others": urlencode({"machine": timeline} if mine else given | {"mine": "1"}),
            "next": page.last and urlencode(given | {"after": _told_place(page.last)}),
            "resting": (counts_kept(request) or {}).get("in_doubt", 0),
            "most_resting": MOST,
            "in_doubt": f"{self.address('changelist')}?{urlencode({'reason': ReasonCode.IN_DOUBT.value})}",
        }
        return self.page(request, "people", pgettext("timeline", "Waiting for people"), now, context)

    def _sees(self, request: HttpRequest, run: TimelineRun) -> bool:
        return policy_of(request).sees_timeline(request.user, run.timeline, run.entity_ref, using=self.alias)

    def take_view(self, request: HttpRequest) -> HttpResponse:
        """Take what waits. A page that was opened takes nothing."""
        if request.method != "POST":
            return HttpResponseRedirect(self.address("people"))
        item, now, who = self._item(request, request.POST.get("item", "")), self.now_of(request), actor_of(request.user)
        try:
            take(item, holder=who, now=now, using=self.alias)
        except TimelineError as error:
            messages.error(request, str(error))
        else:
            messages.success(request, _("You have it now."))
        return HttpResponseRedirect(self.address("people"))

    def hand_over_view(self, request: HttpRequest) -> HttpResponse:
        """Ask to whom it goes; and give it to them."""
        item, now = self._item(request, request.GET.get("item", "")), self.now_of(request)
        form = HandOverForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            to, actor = form.cleaned_data["to"], actor_of(request.user)
            try:
                hand_over(item, to=to, policy=policy_of(request), actor=actor, now=now, using=self.alias)
            except TimelineError as error:
                form.add_error("to", str(error))
            else:
                messages.success(request, _("%(who)s has it now.") % {"who": to})
                return HttpResponseRedirect(self.address("people"))
        ref = item.row.entity_ref
        about = look_at(ref, using=self.alias)
        context = {
            "form": form,
            "has_errors": bool(form.errors),
            "what": item.row,
            "entity": named(ref, about.entity, self.admin_site.name),
            "back": self.address("people"),
        }
        return self.page(request, "hand_over", pgettext("timeline", "Hand over"), now, context)

    def _item(self, request: HttpRequest, given: str) -> Item:
        """What somebody wants to take, if they may answer it. Raises ``Http404`` otherwise."""
        with suppress(ValueError):
            item = find_item(UUID(given), tasks=self.visible(request))
            if item is not None and may_answer(policy_of(request), request.user, item, using=self.alias):
                return item
        raise Http404(_("There is nothing here that you can answer."))

    def say_view(self, request: HttpRequest) -> HttpResponse:
        """Ask what has to be known for an event; and say it, if the run is still where it was when the page was opened."""
        run, event, moves = self._run_asked(request)
        policy, using, ref = policy_of(request), self.alias, run.entity_ref
        about = look_at(ref, using=using)
        seen = may_look(about, self.visible(request), policy, request.user)
        if not seen or not policy.may_ask(request.user, run, event, using=using):
            raise Http404(_("There is nothing here that you can say."))
        definition = registry.timeline(run.timeline)
        title = definition.button_of(event)
        form = SayForm(request.POST if request.method == "POST" else None, declared=definition.payloads.get(event))
        back = f"{self.address('entity')}?{urlencode(ref._asdict())}"
        if request.method == "POST" and form.is_valid():
            try:
                done = self._emit_said(run, event, moves, form, actor_of(request.user))
            except TimelineError as error:
                messages.error(request, str(error))
            else:
                said = _("Recorded: %(event)s.") if done.recorded else _("It was recorded already: %(event)s.")
                messages.success(request, said % {"event": title})
                return HttpResponseRedirect(back)
        context = {
            "form": form,
            "has_errors": bool(form.errors),
            "event": title,
            "run": run,
            "state": definition.titled(run.state),
            "is_old": run.moves != moves or not run.is_open,
            "entity": named(ref, about.entity, self.admin_site.name),
            "back": back,
        }
        return self.page(request, "say", title, self.now_of(request), context)

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

    def places(self, request: HttpRequest, counts: Mapping[str, int]) -> Iterator[BarPlace]:
        """For who may see all tasks."""
        if request.user.has_perm("timeline.view_scheduledtask"):
            name, said = pgettext("timeline", "People"), _("so many wait for a person")
            yield BarPlace(50, "people", name, counts.get("people", 0), said, also=("say", "hand_over"))

    ROUTES = (
        FeaturePage("people", "people/", people_view, frozenset({"machine", "after", "mine"}), is_live=True),
        FeaturePage("say", "say/", say_view, frozenset({"run", "event", "moves"}), takes_forms=True),
        FeaturePage("take", "people/take/", take_view, takes_forms=True),
        FeaturePage("hand_over", "people/hand-over/", hand_over_view, frozenset({"item"}), takes_forms=True),
    )


def _ref_of(each: Asking | Undecided) -> EntityRef:
    return each.run.entity_ref if isinstance(each, Asking) else each.task.entity_ref


def _told_place(place: Place) -> str:
    return f"{'since' if place.is_endless else 'until'}/{place.at:%Y-%m-%dT%H:%M:%S.%f%z}/{place.key}"


def _place(text: str) -> Place | None:
    """Where a page begins; None: where that makes no sense, at the beginning."""
    with suppress(ValueError):
        kind, at, key = text.split("/")
        moment = datetime.fromisoformat(at)
        if kind in {"since", "until"} and moment.utcoffset() is not None and EARLIEST <= moment < LATEST:
            return Place(kind == "since", moment, UUID(key))
    return None


PAGES = (PeoplePages,)
