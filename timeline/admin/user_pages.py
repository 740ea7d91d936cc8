"""What belongs to a user: the tasks of entities that a timeline declares as theirs, by entity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.admin import ModelAdmin
from django.contrib.auth import get_user_model
from django.core.exceptions import FieldError, PermissionDenied, ValidationError
from django.db.models import Model, Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.utils.translation import ngettext, pgettext

from timeline.admin import entities
from timeline.admin.entities import Item, as_foreseen, as_items, in_order, with_what_is_in_the_way
from timeline.admin.list_query import LONGEST
from timeline.admin.pages import Pages, policy_of
from timeline.admin.references import Named, load_to_name, named
from timeline.admin.subject import Reader, sees
from timeline.lifecycle import FINAL, OPEN
from timeline.models import EntityRef, TimelineRun, family_of, model_of, ref_as
from timeline.models.entities import keys_of, path_to
from timeline.policy import TimelinePolicy
from timeline.reading.reason_texts import keep_said, with_said
from timeline.reading.search import (
    NOTHING,
    AheadOf,
    ahead_of,
    failures_like,
    first_of,
    kinds_like,
    rank,
    ref_in,
    refs_of,
    tasks_with,
)
from timeline.registry import registry
from timeline.store.earliest import FirstAsked, first_of_kinds

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import User
    from timeline.reading.outlook import Outlook

MOST: Final = 20  # Of each kind.
MOST_OFFERED: Final = 10  # While somebody types.


class EntityGroup(NamedTuple):
    """What one entity has ahead, the soonest first, and behind it, the latest first."""

    entity: Named
    ahead: list[Item]
    past: list[Item]


class Belongings(NamedTuple):
    """What belongs to a user: ``is_cut``: there are more; ``runs``: open ones of which the user may see what is foreseen."""

    items: list[Item]
    is_cut: bool
    entities: Mapping[EntityRef, Model]
    runs: list[TimelineRun]


def may_own(entity: Model | None, reader: Reader, using: str) -> tuple[Model | None, set[str]]:
    """The account that an entity is, and labels of what may be somebody's and is shown to who looks; none: it is no account."""
    owner = _as_user(entity, using)
    return owner, set() if owner is None else _kinds(reader.policy, reader.user, owner)


def belongings_of(
    owner: Model | None,
    labels: set[str],
    task_keys: Iterable[str],
    visible: ScheduledTaskQuerySet,
    reader: Reader,
    *,
    kept: Sequence[Sequence[Any]],
) -> Belongings:
    """Read what belongs to a user, in as many queries for one thing as for a thousand; no owner: nothing."""
    if owner is None or not labels:
        return Belongings([], False, {}, [])
    using, policy, user = visible.db, reader.policy, reader.user
    tasks = policy.concerning(visible, owner).filter(entity_label__in=labels)
    for name in _names(owner):  # Which the page shows by itself.
        tasks = tasks.exclude(entity_label=name.label, entity_id=name.id)
    sides = [FirstAsked(FINAL, latest=True), FirstAsked(OPEN)]
    past, ahead = first_of_kinds(tasks, _keys_about(labels, task_keys), sides, entities.MAX_SHOWN + 1, also=with_said)
    keep_said([*past, *ahead])
    items, is_cut = as_items(past, ahead, reader)
    items = with_what_is_in_the_way(items, kept, reader, using=using)
    shown = [item.task for item in items if item.task is not None]
    runs = {task.run.pk: task.run for task in shown if task.is_open and task.run_id and task.run and task.run.is_open}
    # Who is shown a task by our own rules is shown what its run brings. Those of a host's are asked.
    ours = all(getattr(type(policy), name) is getattr(TimelinePolicy, name) for name in ("visible", "sees_timeline"))
    if not ours:
        policy.look_up(user, [run.entity_ref for run in runs.values()], using=using)
    seen = [run for run in runs.values() if ours or sees(policy, user, run.timeline, run.entity_ref, using)]
    named = load_to_name({task.entity_ref: None for task in shown}, using=using)
    return Belongings(items, is_cut, named, seen)


def told_belongings(
    theirs: Belongings, outlooks: Iterable[tuple[TimelineRun, Outlook]], *, now: datetime, site: str
) -> dict[str, Any]:
    """Put together what belongs to a user; ``site`` is the admin site's name."""
    found: dict[EntityRef, list[Item]] = defaultdict(list)
    for item in theirs.items:
        if item.task is not None:
            found[item.task.entity_ref].append(item)
    for run, outlook in outlooks:
        found[run.entity_ref].append(as_foreseen(outlook))
    groups = _sorted(
        [_group(named(ref, theirs.entities.get(ref), site), about, now) for ref, about in found.items()], now
    )
    items = [
        item._replace(lane=f"{group.entity.name}: {item.called.title or item.key}", group=number)
        for number, group in enumerate(groups, 1)
        for item in (*group.ahead, *group.past)
    ]
    return {"groups": groups, "groups_cut": theirs.is_cut, "theirs": items}


def _as_user(entity: Model | None, using: str) -> Model | None:
    """The account that an entity is, by the model of accounts or by a parent of it."""
    model = get_user_model()
    if entity is None or isinstance(entity, model):
        return entity
    if entity.__class__ not in family_of(model):
        return None
    path = path_to(model, entity.__class__)
    return model._base_manager.using(using).filter(**{path: entity.pk}).first()


def _names(owner: Model) -> list[EntityRef]:
    return [ref_as(owner, model) for model in family_of(owner.__class__)]


def _kinds(policy: TimelinePolicy, user: User, owner: Model) -> set[str]:
    """Labels of what may be somebody's; for whoever looks at what is not their own, of models they may view."""
    labels = {known.label for known in registry if known.cls.owner}
    return labels if owner == user else {label for label in labels if policy.sees_model(user, label)}


def _keys_about(labels: set[str], task_keys: Iterable[str]) -> list[str]:
    """Keys of the tasks there are of timelines about these models, whether a task is still declared or not."""
    timelines = {known.name for known in registry if known.label in labels}
    return [key for key in task_keys if key.partition(".")[0] in timelines]


def _group(entity: Named, items: Sequence[Item], now: datetime) -> EntityGroup:
    ended = [item for item in items if item.state in FINAL]
    return EntityGroup(
        entity, in_order((item for item in items if item.state not in FINAL), now), in_order(ended, now)[::-1]
    )


def _sorted(groups: Sequence[EntityGroup], now: datetime) -> list[EntityGroup]:
    """What has something ahead comes first, the soonest first; the rest by what happened last."""
    ahead = sorted((it for it in groups if it.ahead), key=lambda it: (it.ahead[0].at is None, it.ahead[0].at or now))
    rest = sorted((it for it in groups if not it.ahead), key=lambda it: it.past[0].at or now, reverse=True)
    return [*ahead, *rest]


class Hit(NamedTuple):
    """One that was found, and what waits for it."""

    ref: EntityRef
    entity: Named
    ahead: AheadOf


class KindOfHits(NamedTuple):
    """What was found of one kind, which ``name`` has in the plural; ``is_cut``: there are more."""

    name: str
    hits: list[Hit]
    is_cut: bool


class OtherHit(NamedTuple):
    """What was found beside entities: what it is, how it is called, and where it is shown."""

    kind: str
    text: str
    url: str


class FindPages(Pages):
    """Whoever may see tasks finds whom they are about, as far as they may see that."""

    def find_view(self, request: HttpRequest) -> HttpResponse:
        """Show what was found; or lead on to it, where it is one thing."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        words = " ".join(request.GET.get("words", "").replace("\x00", "").split())[:LONGEST]
        visible = self.visible(request)
        reads_errors = bool(words) and policy_of(request).sees_payload(request.user)
        now, failures = self.now_and(request, [failures_like(words, visible)] if reads_errors else [])
        kinds = self._found(request, words, visible) if words else []
        hits = [hit for kind in kinds for hit in kind.hits]
        others = self._others(request, words, [*chain(*failures)]) if words else []
        others += [
            OtherHit(
                pgettext("timeline", "Task"),
                f"{registry.titled(task.full_key)} {task.pk}",
                self.address("change", task.pk),
            )
            for task in (tasks_with(words, visible) if not hits else [])
        ]
        if "suggest" in request.GET:
            return self._suggestions(hits, others)
        if len(hits) == 1 and not others:
            return HttpResponseRedirect(hits[0].entity.where)
        if not hits and (where := self._by_id(request, words, visible)):
            return HttpResponseRedirect(where)
        if len(others) == 1 and not hits:
            return HttpResponseRedirect(others[0].url)
        context = {"words": words, "kinds": kinds, "others": others, "most": MOST, "kinds_known": _names_of_kinds()}
        return self.page(request, "find", pgettext("timeline", "Find"), now, context)

    def _others(self, request: HttpRequest, words: str, failures: list[tuple[str, str, int]]) -> list[OtherHit]:
        """Timelines and kinds of tasks, as far as the user may see them, and the failures that were found."""
        sees_all, found = request.user.has_perm("timeline.view_scheduledtask"), []
        for kind in kinds_like(words) if sees_all else []:
            if kind.task_key:
                where = f"{self.address('changelist')}?{urlencode({'task': kind.task_key, 'state': 'all'})}"
                found.append(OtherHit(pgettext("timeline", "Task"), registry.titled(kind.task_key), where))
            else:
                found.append(
                    OtherHit(pgettext("timeline", "Timeline"), kind.timeline, self.address("timeline", kind.timeline))
                )
        for group, key, count in sorted(failures, key=lambda each: (-each[2], each[1], each[0])):
            said = ngettext("%(task)s: %(count)d failed so", "%(task)s: %(count)d failed so", count)
            where = f"{self.address('dead')}?{urlencode({'group': group})}"
            text = said % {"task": registry.titled(key), "count": count}
            found.append(OtherHit(pgettext("timeline", "Error"), text, where))
        return found

    def _by_id(self, request: HttpRequest, words: str, visible: ScheduledTaskQuerySet) -> str:
        """Where a task, or what a run is about, is shown; empty: the words are the id of neither."""
        with suppress(ValueError):
            key = UUID(words)
            if visible.filter(pk=key).exists():
                return self.address("change", key)
            run = TimelineRun.objects.using(self.alias).filter(pk=key).first()
            if run is not None and sees(policy_of(request), request.user, run.timeline, run.entity_ref, self.alias):
                return named(run.entity_ref, None, self.admin_site.name).where
        return ""

    def _suggestions(self, hits: Iterable[Hit], others: Iterable[OtherHit]) -> JsonResponse:
        """What a box may offer while somebody types: names, the best first."""
        names = dict.fromkeys([*(hit.entity.name for hit in hits), *(each.text for each in others)])
        answer = JsonResponse({"names": list(names)[:MOST_OFFERED]})
        answer["Cache-Control"] = "no-store, private"
        return answer

    def _found(self, request: HttpRequest, words: str, visible: ScheduledTaskQuerySet) -> list[KindOfHits]:
        """A query or two for each kind, and one for what waits for all that was found."""
        found = [(model, self._entities(request, model, words)) for model in _models()]
        refs = [ref for _model, hits in found for ref in refs_of(hits)]
        ahead, policy = ahead_of(refs, visible), policy_of(request)
        kinds = []
        for model, hits in found:
            shown = [
                Hit(ref, named(ref, entity, self.admin_site.name), ahead.get(ref, NOTHING))
                for ref, entity in zip(refs_of(hits), hits, strict=True)
                if ref in ahead or _sees(policy, request, ref, visible.db)
            ]
            if shown:
                shown.sort(key=lambda hit: rank(hit.entity.name, words))  # Of equals, those that begin so come first.
                kinds.append(KindOfHits(str(model._meta.verbose_name_plural), shown[:MOST], len(shown) > MOST))
        return sorted(kinds, key=lambda kind: rank(kind.hits[0].entity.name, words))

    def _entities(self, request: HttpRequest, model: type[Model], words: str) -> list[Model]:
        """One more than is shown: by key, with its kind or without, else by the fields that are searched."""
        everybody = model._base_manager.using(self.alias)
        by_key = keys_of(model, [ref_in(words, [model]) or EntityRef(model._meta.label_lower, words)])
        entities = first_of(everybody.filter(pk__in=by_key), 1) if by_key else []
        search = self._search_of(request, model, words)
        if search is not None:
            others = first_of(search, MOST + 1)
            if len(others) > MOST:  # Of many, those that begin so are not to be missed.
                others = [*first_of(_beginning_with(words, search, self._fields_of(request, model)), MOST), *others]
            entities += [other for other in others if other not in entities]
        return entities[: MOST + 1]

    def _search_of(self, request: HttpRequest, model: type[Model], words: str) -> QuerySet[Model] | None:
        """What timelines declare for it, else what its own admin has, for who may use that; None: neither."""
        fields = self._declared_for(model)
        if fields:
            kind = type("Searching", (ModelAdmin,), {"search_fields": fields})
            searching: ModelAdmin[Model] = kind(model, self.admin_site)
            everybody = model._base_manager.using(self.alias).all()
        else:
            own = self.admin_site._registry.get(model)
            if own is None or not own.get_search_fields(request) or not own.has_view_or_change_permission(request):
                return None
            searching, everybody = own, own.get_queryset(request).using(self.alias)
        found, may_repeat = searching.get_search_results(request, everybody, words)
        return found.distinct() if may_repeat else found

    def _fields_of(self, request: HttpRequest, model: type[Model]) -> list[str]:
        """The fields that are searched, by name."""
        own = self.admin_site._registry.get(model)
        fields = self._declared_for(model) or (list(own.get_search_fields(request)) if own is not None else [])
        return [field.lstrip("^=@").removesuffix("__icontains") for field in fields]

    @staticmethod
    def _declared_for(model: type[Model]) -> list[str]:
        """Fields by which timelines say that it is found."""
        names = (name for known in registry if known.label == model._meta.label_lower for name in known.search)
        return list(dict.fromkeys(names))


def _beginning_with(words: str, search: QuerySet[Model], fields: Iterable[str]) -> QuerySet[Model]:
    """Those of which a field is what was typed, or has it before an @ or a blank: *ada* finds ada@example.com."""
    found = search.none()
    for field in fields:
        begins = Q(**{f"{field}__istartswith": f"{words}@"}) | Q(**{f"{field}__istartswith": f"{words} "})
        with suppress(
            FieldError, ValueError, ValidationError
        ):  # Of a field that has no text, or has a lookup of its own.
            found = found | search.filter(begins | Q(**{f"{field}__iexact": words}))
    return found


def _models() -> list[type[Model]]:
    labels = {known.label for known in registry if known.label}
    models = [model for label in labels if (model := model_of(label)) is not None]
    return sorted(models, key=lambda model: (str(model._meta.verbose_name_plural), model._meta.label))


def _names_of_kinds() -> list[str]:
    return [str(model._meta.verbose_name_plural) for model in _models()]


def _sees(policy: TimelinePolicy, request: HttpRequest, ref: EntityRef, using: str) -> bool:
    names = [known.name for known in registry if known.label == ref.label]
    return any(policy.sees_timeline(request.user, name, ref, using=using) for name in names)
