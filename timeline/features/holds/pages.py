"""Holds: what is on hold, one made after a look at what it would hold, and one released."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline import shortcuts
from timeline.admin import references
from timeline.admin.bar import BarPlace
from timeline.admin.before_again import whom
from timeline.admin.pages import OF_ENTITY, FeaturePage, FeaturePages, policy_of
from timeline.admin.references import Named, actor_of, named
from timeline.admin.subject import sees_entity
from timeline.exceptions import TimelineError
from timeline.features.holds.forms import HoldForm, ReleaseForm
from timeline.features.holds.reading import FIRST, told_hold, would_hold, would_release
from timeline.features.holds.store import holds_over as over_tasks
from timeline.features.holds.store import names_to_hold, places_of
from timeline.lifecycle import State
from timeline.models import EntityRef, Hold, Scope, exact_ref
from timeline.models.entities import NO_ENTITY, load_entities
from timeline.models.kin import names_of
from timeline.reading.attention import Ask
from timeline.registry import registry
from timeline.store.transactions import atomic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from timeline.admin.subject import About
    from timeline.models import ScheduledTask
    from timeline.models.decisions import HoldQuerySet


MOST: Final = 200  # Holds on the page.
FEW: Final = 20  # Of those that are over.


class HoldTarget(NamedTuple):
    """What somebody wants to hold: a task, timeline, queue or tag by name, an entity, or everything."""

    scope: Scope
    name: str = ""
    ref: EntityRef | None = None

    @property
    def given(self) -> dict[str, Any]:
        """As the shortcut takes it."""
        if self.ref is not None:
            return {"entity": self.ref}
        return {"everything": True} if self.scope == Scope.EVERYTHING else {self.scope.value: self.name}

    def hold(self, using: str) -> Hold:
        """A hold of it that is not made."""
        names = names_of(self.ref, using=using) if self.ref is not None else ()
        label, key = names[0] if names else NO_ENTITY
        there = [list(name) for name in names]
        return Hold(scope=self.scope, target=self.name, entity_label=label, entity_id=key, names=there)


class HoldGroup(NamedTuple):
    """What can be chosen together: a timeline with its tasks, all queues, all tags. Each is a value and what it is called."""

    title: str
    whole: tuple[str, str] | None
    parts: list[tuple[str, str]]


class ToldHold(NamedTuple):
    """
    A hold, and what is said of it; ``entity`` is for who may view all tasks, but not on its own page.

    ``due``: of what a brake has stopped, how many due tasks the user sees, listed at ``where``; None: not counted.
    """

    hold: Hold
    text: str
    entity: Named | None = None
    due: int | None = None
    where: str = ""


class HoldPages(FeaturePages):
    """Who may see holds finds them; who may hold makes and releases them."""

    def holds_view(self, request: HttpRequest) -> HttpResponse:
        """Show what is on hold, and what was last."""
        policy, using = policy_of(request), self.alias
        may_hold = policy.may_hold(request.user)
        if not policy.sees_holds(request.user):
            raise PermissionDenied
        holds = policy.visible_holds(Hold.objects.using(using), request.user)
        over = list(holds.filter(released_at__isnull=False).order_by("-released_at", "-pk")[:FEW])
        now, there = self.now_of(request), list(holds.open().oldest_first()[:MOST])
        names = self._names_of(request, [*there, *over])
        context = {
            "holds": self._told_holds(request, there, names, now),
            "over": [(hold, names.get(hold.entity_ref)) for hold in over],
            "may_hold": may_hold,
            "groups": _groups() if may_hold else [],
        }
        return self.page(request, "holds", pgettext("timeline", "Holds"), now, context)

    def _names_of(self, request: HttpRequest, holds: list[Hold]) -> dict[EntityRef, Named]:
        if not request.user.has_perm("timeline.view_scheduledtask"):
            return {}
        policy, user, using = policy_of(request), request.user, self.alias
        held = [hold.entity_ref for hold in holds if hold.scope == Scope.ENTITY]
        seen = [ref for ref in held if sees_entity(policy, user, ref, using)]
        return references.names_of(seen, using=using, site=self.admin_site.name)

    def _told_holds(
        self, request: HttpRequest, holds: list[Hold], names: dict[EntityRef, Named], now: datetime
    ) -> list[ToldHold]:
        """Say what each is; of those of a brake, what a release lets go, in one statement."""
        keys = {hold.target for hold in holds if hold.is_by_brake}
        due = self.visible(request).due(now).with_handler(sorted(keys)).order_by().values_list("task_key")
        counts = dict(due.annotate(count=Count("pk"))) if keys else {}
        overdue = f"{self.address('changelist')}?state=overdue"
        return [
            ToldHold(
                hold, told_hold(hold), None, counts.get(hold.target, 0), f"{overdue}&{urlencode({'task': hold.target})}"
            )
            if hold.is_by_brake
            else ToldHold(hold, told_hold(hold), names.get(hold.entity_ref))
            for hold in holds
        ]

    def hold_view(self, request: HttpRequest) -> HttpResponse:
        """Show what a hold of one or more things would hold, and ask why; once that is said, make it."""
        policy, using = policy_of(request), self.alias
        if not policy.may_hold(request.user):
            raise PermissionDenied
        targets = self._targets(request)
        if not targets:
            messages.error(request, _("Choose first what to hold."))
            return HttpResponseRedirect(self._back(None))
        now, zone, ref = self.now_of(request), timezone.get_current_timezone(), targets[0].ref
        form = HoldForm(request.POST if request.method == "POST" else None, now=now, zone=zone)
        if request.method == "POST" and form.is_valid() and self._hold(request, targets, form):
            return HttpResponseRedirect(self._back(ref))
        entity = None if ref is None else load_entities([ref], using=using).get(ref)
        holds = [target.hold(using) for target in targets]
        context = {
            "form": form,
            "has_errors": bool(form.errors),
            "what": named(ref, entity, self.admin_site.name).name if ref is not None else holds[0].what,
            "several": [hold.what for hold in holds[1:]] and [hold.what for hold in holds],
            "entity": ref,
            "would_hold": would_hold(self.visible(request), holds, now=now),
            "back": self._back(ref),
        }
        return self.page(request, "hold", pgettext("timeline", "Put on hold"), now, context)

    def _targets(self, request: HttpRequest) -> list[HoldTarget]:
        """What the address says is to be held; 404 for what is not there, or an entity that no timeline is about."""
        known = {value for group in _groups() for value, _name in (*group.parts, *filter(None, [group.whole]))}
        asked = [what for what in request.GET.getlist("what") if what]
        if not known.union([Scope.EVERYTHING.value]).issuperset(asked):
            raise Http404(_("There is no such thing to hold."))
        if Scope.EVERYTHING in asked:
            return [HoldTarget(Scope.EVERYTHING)]
        if asked or not OF_ENTITY.intersection(request.GET):
            parts = [what.partition(":") for what in dict.fromkeys(asked)]
            return [HoldTarget(Scope(scope), name) for scope, _colon, name in parts]
        ref = exact_ref(*(request.GET.get(name, "") for name in ("label", "id")))
        is_known = ref is not None and registry.knows(ref.label)
        if ref is None or not is_known or load_entities([ref], using=self.alias).get(ref) is None:
            raise Http404(_("There is no such entity."))
        return [HoldTarget(Scope.ENTITY, ref=ref)]

    def _hold(self, request: HttpRequest, targets: list[HoldTarget], form: HoldForm) -> bool:
        """Make them, all or none, and say so; what is sent twice is made once."""
        given = {name: form.cleaned_data[name] for name in ("until", "then", "reason")} | {
            "actor": actor_of(request.user)
        }
        like = Hold.objects.using(self.alias).open().filter(lifted_at__isnull=True, **given)
        there = set(like.values_list("scope", "target", "entity_label", "entity_id"))
        try:
            with atomic(using=self.alias):
                for target in targets:
                    hold = target.hold(self.alias)
                    if (hold.scope, hold.target, *hold.entity_ref) not in there:
                        shortcuts.hold(**target.given, **given, using=self.alias)
        except TimelineError as error:
            messages.error(request, str(error))
            return False
        messages.success(request, _("It is on hold: within a poll nothing of it is started any more."))
        return True

    def release_view(self, request: HttpRequest) -> HttpResponse:
        """Show what becomes of the tasks under a hold, and ask; once that is confirmed, release it."""
        policy, using = policy_of(request), self.alias
        if not policy.may_hold(request.user):
            raise PermissionDenied
        ref = exact_ref(*(request.GET.get(name, "") for name in ("label", "id"))) if "label" in request.GET else None
        rows = policy.visible_holds(Hold.objects.using(using), request.user).open()
        now, [there] = self.now_and(request, [rows.oldest_first()[: MOST + 1]])
        asked = request.GET.get("hold", "")
        hold = next((each for each in there if str(each.pk) == asked), None) or self._hold_of(rows, asked)
        if hold is None or hold.lifted_at is not None:
            messages.error(request, _("It is released already, or is not there."))
            return HttpResponseRedirect(self._back(ref))
        given = request.POST if request.method == "POST" else None
        form = ReleaseForm(given, is_needed=hold.is_by_brake, now=now, zone=timezone.get_current_timezone())
        if given is not None and form.is_valid() and self._release(request, hold, form.cleaned_data["reason"].strip()):
            return HttpResponseRedirect(self._back(ref))
        visible, others = self.visible(request), [each for each in there if each.pk != hold.pk]
        said, first = would_release(visible, hold, others, now=now)
        names = references.names_of(first, using=using, site=self.admin_site.name)
        its_name = self._names_of(request, [hold]).get(hold.entity_ref) if hold.scope == Scope.ENTITY else None
        context = {
            "form": form,
            "has_errors": bool(form.errors),
            "hold": hold,
            "what": its_name.name if its_name is not None else hold.what,
            "told": told_hold(hold),
            "becomes": said,
            "whom": whom(first[:FIRST], names, is_all=len(first) <= FIRST) if hold.scope != Scope.ENTITY else None,
            "entity": ref,
            "back": self._back(ref),
        }
        return self.page(request, "release", pgettext("timeline", "Release"), now, context)

    def _hold_of(self, rows: HoldQuerySet, asked: str) -> Hold | None:
        """One that is not among the first; None: it is not there."""
        with suppress(ValueError):
            return rows.filter(pk=UUID(asked)).first()
        return None

    def _release(self, request: HttpRequest, hold: Hold, reason: str) -> bool:
        try:
            shortcuts.release(hold.pk, actor=actor_of(request.user), reason=reason, using=self.alias)
        except (Hold.DoesNotExist, TimelineError) as error:
            messages.error(request, str(error))
            return False
        messages.success(request, _("It is released."))
        return True

    def _back(self, ref: EntityRef | None) -> str:
        return f"{self.address('entity')}?{urlencode(ref._asdict())}" if ref is not None else self.address("holds")

    def counted(self, request: HttpRequest) -> Iterator[Ask]:
        """Those in force."""
        if policy_of(request).sees_holds(request.user):
            yield Ask("open_holds", Hold.objects.using(self.alias).open().oldest_first())

    def places(self, request: HttpRequest, counts: Mapping[str, int]) -> Iterator[BarPlace]:
        """For who may see them."""
        if policy_of(request).sees_holds(request.user):
            number, said = counts.get("open_holds", 0), _("so many are in force")
            yield BarPlace(70, "holds", pgettext("timeline", "Holds"), number, said, also=("hold", "release"))

    ROUTES = (
        FeaturePage("holds", "holds/", holds_view, is_live=True),
        FeaturePage("hold", "holds/new/", hold_view, OF_ENTITY | {"what"}, takes_forms=True),
        FeaturePage("release", "holds/release/", release_view, OF_ENTITY | {"hold"}, takes_forms=True),
    )


PAGES = (HoldPages,)


def holds_over(about: About, *, using: str) -> HoldQuerySet:
    """Ask for what is on hold of an entity."""
    return Hold.objects.using(using).open().filter(_over(about, using))


def releasable(request: HttpRequest, task: ScheduledTask, *, using: str) -> list[Hold]:
    """Holds over a task that who looks may release, the oldest first. At most two statements."""
    policy = policy_of(request)
    if not task.is_open or task.state == State.ACTIVE or not policy.may_hold(request.user):
        return []
    over = [hold.pk for hold in over_tasks([task], using=using).get(task.pk, ()) if hold.lifted_at is None]
    rows = policy.visible_holds(Hold.objects.using(using), request.user).open()
    return list(rows.filter(pk__in=over).oldest_first()) if over else []


def told_holds(holds: Iterable[Hold], seen: Collection[UUID]) -> list[ToldHold]:
    """What is on hold, and why, for the page of an entity; who decided, of those that who looks may see."""
    in_order = sorted(holds, key=lambda hold: (hold.created_at, hold.pk))
    return [ToldHold(hold, told_hold(hold, people=hold.pk in seen)) for hold in in_order]


def _over(about: About, using: str) -> Q:
    """Condition on holds that are over all that is about an entity, or over a timeline of it."""
    ref, names = about.ref, about.timelines
    keys = [key for key in registry.task_keys() if key.partition(".")[0] in names]
    queues, tags = {places_of(key)[0] for key in keys}, {tag for key in keys for tag in places_of(key)[1]}
    over = Q(scope=Scope.EVERYTHING) | Q(scope=Scope.TIMELINE, target__in=names) | Q(scope=Scope.TASK, target__in=keys)
    over |= Q(scope=Scope.QUEUE, target__in=sorted(queues)) | Q(scope=Scope.TAG, target__in=sorted(tags))
    if not ref.label:
        return over
    root = names_of(ref, using=using)[0]
    return over | Q(scope=Scope.ENTITY, entity_label=root.label, entity_id=root.id)


def _groups() -> list[HoldGroup]:
    names = names_to_hold()

    def all_of(scope: Scope) -> list[tuple[str, str]]:
        return [(f"{scope.value}:{name}", name) for name in names[scope]]

    tasks = {
        value: [task for task in all_of(Scope.TASK) if task[1].partition(".")[0] == value]
        for value in names[Scope.TIMELINE]
    }
    groups = [HoldGroup(whole[1], whole, tasks[whole[1]]) for whole in all_of(Scope.TIMELINE)]
    groups += [
        HoldGroup(pgettext("timeline", "Queues"), None, all_of(Scope.QUEUE)),
        HoldGroup(pgettext("timeline", "Tags"), None, all_of(Scope.TAG)),
    ]
    return [group for group in groups if group.whole or group.parts]
