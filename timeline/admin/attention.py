"""The page that opens first: all that needs somebody's attention, one line each, with the action beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline.admin.bar import MOST as MOST_COUNTED
from timeline.admin.bar import counts_kept, endpoints_at, sees_all_runs, sees_endpoints, told
from timeline.admin.before_again import Whom, first_of, whom
from timeline.admin.pages import Pages, is_unpolled, policy_of
from timeline.admin.references import REASONS, Called, Named, called, load_to_name, named
from timeline.admin.subject import Reader
from timeline.dialects import dialect_of
from timeline.features.holds.reading import told_hold
from timeline.features.holds.store import OnHold, covers
from timeline.features.machines.lines import PersonLines, WaitingPerson
from timeline.features.machines.people import FirstAsked
from timeline.features.waits.reading import Undecided
from timeline.lifecycle import ReasonCode
from timeline.likeness import headline
from timeline.models import EntityRef, Hold, ScheduledTask, Scope
from timeline.policy import Action
from timeline.reading.attention import Waiting, asks_of_overdue, counting, read_counts, tasks_resting, waiting_in_words
from timeline.reading.dead_letters import groups_of, kinds_in_retry, with_samples
from timeline.reading.diagnosis import told_troubles, told_undefined, undefined_among
from timeline.registry import registry
from timeline.store.multi_query import Words, gather

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import TimelinePolicy


FEW: Final = 10  # Lines of each kind; the rest is a click away.
CONCERNED: Final = 20  # Tasks of a group of which it is said whom they are about.


class ListedCount(NamedTuple):
    """How much is in some way, in words, and where it is listed; empty: nowhere."""

    name: str
    said: str
    url: str = ""


class Line(NamedTuple):
    """
    One thing that needs attention.

    Args:
        called: What it is, if it is a task or a kind of tasks; None: ``text`` says it.
        url: Where it is shown; empty: nowhere.
        text: Why, or what it is.
        entity: What it is about; None: nothing, or many.
        at, at_said: A moment, and what it is: ``until``, ``since``.
        links: What can be done, each with its address.
        whom: Whom it is about, if there are many.
    """

    called: Called | None
    url: str
    text: str
    entity: Named | None = None
    at: datetime | None = None
    at_said: str = ""
    links: Sequence[tuple[str, str]] = ()
    whom: Whom | None = None


class Section(NamedTuple):
    """Things of one kind; ``more`` leads to all of them. ``people``: those that wait for a person."""

    title: str
    number: str
    lines: Sequence[Line]
    more: str = ""
    people: Sequence[WaitingPerson] = ()
    is_cut: bool = False


def told_waiting(
    waiting: Waiting, address: Callable[[str], str], request: HttpRequest, policy: TimelinePolicy, *, site: str
) -> list[ListedCount]:
    """Say how much waits of each kind, with the page that lists it, where the user may open that."""
    changelist = address("changelist")
    pages: dict[str, Callable[[], str]] = {
        "dead_letters": lambda: address("dead"),
        "people": lambda: address("people"),
        "in_doubt": lambda: f"{changelist}?{urlencode({'reason': ReasonCode.IN_DOUBT.value})}",
        "changed": lambda: f"{changelist}?{urlencode({'reason': ReasonCode.DEFINITION.value})}",
        "closed": lambda: address("limits"),
        "holds": lambda: address("holds") if policy.sees_holds(request.user) else "",
        "endpoints": lambda: endpoints_at(site) if sees_endpoints(request) else "",
    }
    return [ListedCount(name, said, pages[name]()) for name, said in waiting_in_words(waiting).items()]


class Found(NamedTuple):
    """What the first two statements read."""

    now: datetime
    holds: list[Hold]
    overdue: dict[str, int]
    groups: list[Any]
    retrying: list[Any]
    in_doubt: list[ScheduledTask]
    changed: list[ScheduledTask]
    closing: list[ScheduledTask]
    task_keys: list[str]
    asking: list[Any]


class AttentionPages(Pages):
    """Who may see all tasks sees what needs attention, as far as the policy shows it."""

    def attention_view(self, request: HttpRequest) -> HttpResponse:
        """Show it, what waits for people first, by the time until when."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        policy, visible, using = policy_of(request), self.visible(request), self.alias
        found, first = self._read(request, visible)
        now, unpolled = found.now, is_unpolled(request)
        samples = visible.filter(pk__in=[key for *_group, key in found.groups[:FEW]])
        groups = [(group, key, count) for group, key, count, *_rest in found.groups[:FEW]]
        concerned = [_concerned(visible, group, key) for group, key, _count in groups]
        *more, sampled = gather([*first.go_on(found.asking), *concerned, samples], using=using)
        more, lists = more[: len(more) - len(groups)], more[len(more) - len(groups) :]
        whose = {
            each[:2]: ([EntityRef(*ref) for ref in refs], each[2] <= len(refs))
            for each, refs in zip(groups, lists, strict=True)
        }
        may_say = lambda run: policy.asked_of(request.user, run, using=using)  # noqa: E731 (one call, below)
        asking = first.read(found.asking, more, may_say)
        refs = [*self._refs(found, asking), *(ref for some, _is_all in whose.values() for ref in first_of(some))]
        there = load_to_name(refs, using=using)
        names = {ref: named(ref, there.get(ref), self.admin_site.name) for ref in refs}
        about = {each: whom(some, names, is_all=is_all) for each, (some, is_all) in whose.items()}
        people = self._lines(request, asking[:FEW], names, found.holds, now)
        counts = counts_kept(request) or {}
        waiting, reader = Waiting.of(counts), Reader(policy, request.user)
        sections = [
            self._people(waiting, people, is_cut=len(asking) > FEW),
            self._overdue(found.overdue, unpolled=unpolled),
            self._dead(request, waiting, found, with_samples(found.groups[:FEW], sampled), reader, about),
            self._resting(_("Steps in doubt"), waiting.in_doubt, found.in_doubt, ReasonCode.IN_DOUBT, names),
            self._resting(
                _("Rest because their code changed"), waiting.changed, found.changed, ReasonCode.DEFINITION, names
            ),
            self._closed(waiting, found.closing, names),
            self._retrying(found.retrying),
            self._holds(request, counts.get("open_holds", 0), found.holds, names),
            self._endpoints(request, waiting),
            self._machinery(now, found.task_keys, unpolled=unpolled),
        ]
        shown = [section for section in sections if section.number]
        context = {
            "sections": shown,
            "looked": self._looked(request, sections),
            "total": told(waiting.total),
            "waiting": waiting.total,
        }
        return self.page(request, "attention", pgettext("timeline", "Needs attention"), now, context)

    def _looked(self, request: HttpRequest, sections: Iterable[Section]) -> list[str]:
        """What was looked at for this user, in words."""
        hidden = set() if sees_endpoints(request) else {pgettext("timeline", "Webhooks")}
        hidden |= set() if policy_of(request).sees_holds(request.user) else {pgettext("timeline", "On hold")}
        return [section.title for section in sections if section.title not in hidden]

    def _read(self, request: HttpRequest, visible: ScheduledTaskQuerySet) -> tuple[Found, FirstAsked]:
        """Two statements: the time, the counts and the holds; and what depends on these."""
        using, policy = self.alias, policy_of(request)
        holds = policy.visible_holds(Hold.objects.using(using), request.user)
        keys = Words(dialect_of(using).sql("task_keys_there"))
        of_kinds = Hold.objects.using(using).open().order_by().values_list("scope", "target").distinct()
        now, [there, kinds, task_keys] = self.now_and(request, [holds.open().oldest_first()[: FEW + 1], of_kinds, keys])
        free = visible.taken_of(registry.task_keys(), OnHold(frozenset(map(tuple, kinds))))
        first = FirstAsked(visible, FEW + 1, sees_all_runs(policy), now)
        late = counting(asks_of_overdue(free, now=now), most=MOST_COUNTED, using=using)
        asked: list[Any] = [
            late if late is not None else Hold.objects.none().values_list("pk"),
            groups_of(visible)[: FEW + 1],
            kinds_in_retry(visible)[: FEW + 1],
            tasks_resting(visible, ReasonCode.IN_DOUBT)[: FEW + 1],
            tasks_resting(visible, ReasonCode.DEFINITION)[: FEW + 1],
            visible.closing()[: FEW + 1],
            *first.begin(),
        ]
        overdue, groups, retrying, in_doubt, changed, closing, *asking = gather(asked, using=using)
        groups.sort(key=lambda each: each[4], reverse=True)
        return Found(
            now=now,
            holds=sorted(there, key=lambda hold: (hold.created_at, hold.pk)),
            overdue=read_counts(overdue, most=MOST_COUNTED),
            groups=groups,
            retrying=sorted(retrying, key=lambda each: (-each[1], each[0])),
            in_doubt=_in_order(in_doubt),
            changed=_in_order(changed),
            closing=sorted(closing, key=lambda task: (task.limit_key, task.slot)),
            task_keys=task_keys,
            asking=asking,
        ), first

    def _refs(self, found: Found, asking: Iterable[Any]) -> list[EntityRef]:
        tasks = [*found.in_doubt, *found.changed, *found.closing]
        held = [hold.entity_ref for hold in found.holds if hold.scope == Scope.ENTITY]
        whose = [each.task.entity_ref if isinstance(each, Undecided) else each.run.entity_ref for each in asking]
        return list(dict.fromkeys([*whose, *(task.entity_ref for task in tasks), *held]))

    def _lines(
        self, request: HttpRequest, asking: list[Any], names: dict[EntityRef, Named], holds: list[Hold], now: datetime
    ) -> list[WaitingPerson]:
        lines = PersonLines.of(self, request, asking, now, whys=False)
        told = []
        for each in asking:
            if isinstance(each, Undecided):
                is_held = any(covers(hold, each.task) for hold in holds)
                told.append(lines.line(Undecided(each.task, each.when, is_held), names[each.task.entity_ref]))
            else:
                told.append(lines.line(each, names[each.run.entity_ref]))
        return told

    def _people(self, waiting: Waiting, people: list[WaitingPerson], *, is_cut: bool) -> Section:
        title = pgettext("timeline", "Waiting for people")
        return Section(title, told(waiting.people), [], self.address("people"), people, is_cut)

    def _overdue(self, overdue: dict[str, int], *, unpolled: bool) -> Section:
        where = f"{self.address('changelist')}?state=overdue"
        why = {
            "untaken": _("Nobody polls, so nothing is sent to workers.")
            if unpolled
            else _("Polls have not taken them yet."),
            "unclaimed": _("They are ready, and no worker starts them: start more workers."),
            "unstarted": _("They were sent, and no worker has started them: see that workers are there."),
        }
        lines = [Line(None, where, f"{_tasks(number)}: {why[name]}") for name, number in overdue.items() if number]
        return Section(pgettext("timeline", "Overdue"), told(sum(overdue.values())), lines, where)

    def _dead(
        self,
        request: HttpRequest,
        waiting: Waiting,
        found: Found,
        letters: Sequence[Any],
        reader: Reader,
        about: Mapping[tuple[str, str], Whom],
    ) -> Section:
        may_redrive = policy_of(request).allows(request.user, Action.REDRIVE)
        lines = []
        for each in letters:
            group = urlencode({"group": each.group})
            links = [(_("Run again…"), f"{self.address('redrive')}?{group}")] if may_redrive and each.group else []
            shown = reader.shown(each.sample)
            said = headline(shown.error) if each.count > 1 else shown.error
            cause = _short(said or shown.reason) or str(REASONS.get(ReasonCode(each.sample.reason_code), ""))
            text = f"{_tasks(each.count)}: {cause}" if cause else _tasks(each.count)
            where, since = f"{self.address('dead')}?{group}", pgettext("timeline", "since")
            theirs = about.get((each.group, each.task_key))
            lines.append(Line(called(each.task_key), where, text, None, each.first_at, since, links, theirs))
        return Section(
            pgettext("timeline", "Failed for good"),
            told(waiting.dead_letters),
            lines,
            self.address("dead"),
            is_cut=len(found.groups) > FEW,
        )

    def _resting(
        self, title: str, number: int, tasks: list[ScheduledTask], code: ReasonCode, names: dict[EntityRef, Named]
    ) -> Section:
        lines = [
            Line(
                called(task.full_key),
                self.address("change", task.pk),
                "",
                names[task.entity_ref],
                task.scheduled_at,
                _("looks again"),
                [(_("Decide…"), self.address("change", task.pk))],
            )
            for task in tasks[:FEW]
        ]
        where = f"{self.address('changelist')}?{urlencode({'reason': code.value})}"
        return Section(title, told(number), lines, where, is_cut=len(tasks) > FEW)

    def _closed(self, waiting: Waiting, tasks: list[ScheduledTask], names: dict[EntityRef, Named]) -> Section:
        where = self.address("limits") if tasks else ""
        lines = [
            Line(
                called(task.full_key),
                self.address("change", task.pk),
                task.limit_key,
                names[task.entity_ref],
                task.finished_at,
                pgettext("timeline", "since"),
                [(_("Open it…"), where)],
            )
            for task in tasks[:FEW]
        ]
        return Section(_("Closed limits"), told(waiting.closed), lines, where, is_cut=len(tasks) > FEW)

    def _retrying(self, kinds: list[Any]) -> Section:
        where = f"{self.address('changelist')}?state=retryable"
        lines = [
            Line(called(key), f"{where}&{urlencode({'task': key})}", _tasks(number), None, at, _("next try"))
            for key, number, at in kinds[:FEW]
        ]
        count = sum(number for _key, number, _at in kinds)
        return Section(_("Failing now, will be tried again"), told(count), lines, where, is_cut=len(kinds) > FEW)

    def _holds(self, request: HttpRequest, number: int, holds: list[Hold], names: dict[EntityRef, Named]) -> Section:
        where, may_hold = self.address("holds"), policy_of(request).may_hold(request.user)
        lines = [
            Line(
                None,
                where,
                told_hold(hold),
                names.get(hold.entity_ref) if hold.scope == Scope.ENTITY else None,
                hold.until,
                pgettext("timeline", "until") if hold.until else "",
                [(pgettext("timeline", "Release…"), f"{self.address('release')}?hold={hold.pk}")] if may_hold else [],
            )
            for hold in holds[:FEW]
        ]
        return Section(pgettext("timeline", "On hold"), told(number), lines, where, is_cut=len(holds) > FEW)

    def _endpoints(self, request: HttpRequest, waiting: Waiting) -> Section:
        where = endpoints_at(self.admin_site.name) if sees_endpoints(request) else ""
        lines = [Line(None, where, said) for name, said in waiting_in_words(waiting).items() if name == "endpoints"]
        return Section(pgettext("timeline", "Webhooks"), told(waiting.endpoints), lines, where)

    def _machinery(self, now: datetime, task_keys: Iterable[str], *, unpolled: bool) -> Section:
        """What is wrong with how things are run, beside what is overdue."""
        said = told_troubles(now=now, using=self.alias, is_polled=not unpolled)
        lines = [Line(None, "", text) for text in said]
        undefined = undefined_among(task_keys, self.alias)
        if undefined:
            keys = {"task": undefined[0]["task_key"]}
            lines.append(Line(None, f"{self.address('changelist')}?{urlencode(keys)}", told_undefined(undefined)))
        return Section(_("How it is run"), told(len(lines)), lines, self.address("health"))


def _concerned(visible: ScheduledTaskQuerySet, group: str, task_key: str) -> Any:
    """Whom the latest of a group are about."""
    dead = visible.dead_letters(group).filter(fingerprint=group, task_key=task_key)
    return dead.order_by("-finished_at", "-pk").values_list("entity_label", "entity_id")[:CONCERNED]


def _in_order(tasks: Iterable[ScheduledTask]) -> list[ScheduledTask]:
    return sorted(tasks, key=lambda task: (task.scheduled_at, task.pk))


def _tasks(number: int) -> str:
    return ngettext("%(count)s task", "%(count)s tasks", number) % {"count": told(number)}


def _short(text: str, most: int = 160) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= most else f"{line[: most - 1]}…"
