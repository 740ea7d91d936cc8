"""The page that finds people and things by name, email or id; one that is found alone is opened at once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import pgettext

from timeline.admin.asking import LONGEST
from timeline.admin.naming import Named, named
from timeline.admin.pages import Pages, policy_of
from timeline.models import EntityRef, model_of
from timeline.models.entities import keys_of
from timeline.policy import TimelinePolicy
from timeline.reading.finding import NOTHING, Ahead, ahead_of, first_of, refs_of
from timeline.registry import registry

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

    from timeline.models.task import ScheduledTaskQuerySet

MOST: Final = 20  # Of each kind.


class Hit(NamedTuple):
    """One that was found, and what waits for it."""

    ref: EntityRef
    entity: Named
    ahead: Ahead


class Kind(NamedTuple):
    """
    What was found of one kind.

    Args:
        name: Of many of them, ``users``.
        hits: By their keys.
        is_cut: Whether there are more.
    """

    name: str
    hits: list[Hit]
    is_cut: bool


class FindPages(Pages):
    """Whoever may see tasks finds whom they are about, as far as they may see that."""

    def find_view(self, request: HttpRequest) -> HttpResponse:
        """Show what was found; or lead on to it, where it is one thing."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        words = " ".join(request.GET.get("words", "").replace("\x00", "").split())[:LONGEST]
        visible = self.visible(request)
        kinds = self._found(request, words, visible) if words else []
        hits = [hit for kind in kinds for hit in kind.hits]
        if len(hits) == 1:
            return HttpResponseRedirect(hits[0].entity.where)
        if not hits and (task := _task_of(words, visible)) is not None:
            return HttpResponseRedirect(self.address("change", task))
        context = {"words": words, "kinds": kinds, "most": MOST, "kinds_known": _names_of_kinds()}
        return self.page(request, "find", pgettext("timeline", "Find"), self.now_of(request), context)

    def _found(self, request: HttpRequest, words: str, visible: ScheduledTaskQuerySet) -> list[Kind]:
        """A query or two for each kind, and one for what waits for all that was found."""
        found = [(model, self._entities(request, model, words)) for model in _models()]
        refs = [ref for _model, entities in found for ref in refs_of(entities)]
        ahead, policy = ahead_of(refs, visible), policy_of(request)
        kinds = []
        for model, entities in found:
            shown = [
                Hit(ref, named(ref, entity, self.admin_site.name), ahead.get(ref, NOTHING))
                for ref, entity in zip(refs_of(entities), entities, strict=True)
                if ref in ahead or _sees(policy, request, ref, visible.db)
            ]
            if shown:
                kinds.append(Kind(str(model._meta.verbose_name_plural), shown[:MOST], len(shown) > MOST))
        return kinds

    def _entities(self, request: HttpRequest, model: type[Model], words: str) -> list[Model]:
        """One more than is shown: by key, else by the fields that are searched."""
        everybody = model._base_manager.using(self.alias)
        by_key = keys_of(model, [EntityRef(model._meta.label_lower, words)])
        entities = first_of(everybody.filter(pk__in=by_key), 1) if by_key else []
        search = self._search_of(request, model, words)
        if search is not None:
            others = first_of(search, MOST + 1)
            entities += [other for other in others if other not in entities]
        return entities[: MOST + 1]

    def _search_of(self, request: HttpRequest, model: type[Model], words: str) -> QuerySet[Model] | None:
        """What timelines declare for it, else what its own admin has, for who may use that; None: neither."""
        label = model._meta.label_lower
        fields = {name: None for known in registry if known.label == label for name in known.search}
        if fields:
            kind = type("Searching", (ModelAdmin,), {"search_fields": list(fields)})
            searching: ModelAdmin[Model] = kind(model, self.admin_site)
            everybody = model._base_manager.using(self.alias).all()
        else:
            own = self.admin_site._registry.get(model)
            if own is None or not own.get_search_fields(request) or not own.has_view_or_change_permission(request):
                return None
            searching, everybody = own, own.get_queryset(request).using(self.alias)
        found, may_repeat = searching.get_search_results(request, everybody, words)
        return found.distinct() if may_repeat else found


def _models() -> list[type[Model]]:
    """Models that timelines are about, by name."""
    labels = {known.label for known in registry if known.label}
    models = [model for label in labels if (model := model_of(label)) is not None]
    return sorted(models, key=lambda model: (str(model._meta.verbose_name_plural), model._meta.label))


def _names_of_kinds() -> list[str]:
    return [str(model._meta.verbose_name_plural) for model in _models()]


def _sees(policy: TimelinePolicy, request: HttpRequest, ref: EntityRef, using: str) -> bool:
    """Whether the user would see what a timeline has for it."""
    names = [known.name for known in registry if known.label == ref.label]
    return any(policy.sees_timeline(request.user, name, ref, using=using) for name in names)


def _task_of(words: str, visible: ScheduledTaskQuerySet) -> UUID | None:
    """The task whose id this is."""
    with suppress(ValueError):
        key = UUID(words)
        return key if visible.filter(pk=key).exists() else None
    return None
