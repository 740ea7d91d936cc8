"""What the pages of endpoints and deliveries have in common: the bar, an alarm if nobody sends, and which filters they take."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.apps import apps
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from timeline.admin.bar import BarEntry
from timeline.clocks import story_now
from timeline.exceptions import TimelineError
from timeline.timing import check_time
from timeline.webhooks.links import pages_of
from timeline.webhooks.models import Delivery, Endpoint
from timeline.webhooks.upkeep import unsent_since

IS_UNFOLD: Final = apps.is_installed("unfold")
FRAME: Final = "admin/timeline/unfold.html" if IS_UNFOLD else "admin/base_site.html"

if TYPE_CHECKING:
    Themed = admin.ModelAdmin[Any]
else:
    Themed = import_module("unfold.admin").ModelAdmin if IS_UNFOLD else admin.ModelAdmin


class FilterMomentField(forms.Field):
    """A moment as filters of dates write it: with its offset."""

    def clean(self, value: Any) -> Any:
        try:
            at = parse_datetime(value)
            return None if at is None else check_time("at", at)
        except (ValueError, TimelineError) as error:
            raise ValidationError(str(error)) from None


def asked_of_choices(name: str, choices: Any) -> dict[str, forms.Field]:
    return {f"{name}__exact": forms.ChoiceField(choices=choices)}


def asked_of_relation(name: str) -> dict[str, forms.Field]:
    """What the filter of a relation asks, to rows whose keys are UUIDs."""
    return {f"{name}__id__exact": forms.UUIDField()}


def asked_of_moment(name: str) -> dict[str, forms.Field]:
    return {f"{name}__{lookup}": FilterMomentField() for lookup in ("gte", "lt")}


class Filtering(Themed):
    """A list that answers only to its own filters: Django's answer any question, such as the letters of a secret."""

    lookups: ClassVar[Mapping[str, forms.Field]] = {}

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:  # noqa: ARG002
        field = self.lookups.get(lookup)
        try:
            return field is not None and field.clean(value) is not None
        except ValidationError:
            return False


class OnTheBar(Filtering):
    """Has the bar of the pages of timelines on top, for who may open these."""

    def with_bar(self, request: HttpRequest, context: dict[str, Any] | None = None) -> dict[str, Any]:
        """What each page is filled in with. The bar is read where it is shown."""
        request.current_app = self.admin_site.name
        return {
            "bar": partial(self._bar, request),
            "zone_name": timezone.get_current_timezone_name(),
            **(context or {}),
        }

    def _bar(self, request: HttpRequest) -> list[BarEntry]:
        pages = pages_of(self.admin_site)
        return pages.bar(request, "endpoints") if pages is not None and pages.has_view_permission(request) else []

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        return super().changeform_view(request, object_id, form_url, self.with_bar(request, extra_context))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().delete_view(request, object_id, self.with_bar(request, extra_context))


class Alarming(OnTheBar):
    """Has a list that says so."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        using = self.get_queryset(request).db
        title, since = capfirst(self.opts.verbose_name_plural), unsent_since(now=story_now(using), using=using)
        context = {"title": title, "unsent_since": since, "others": self._others(request), **(extra_context or {})}
        return super().changelist_view(request, self.with_bar(request, context))

    def _others(self, request: HttpRequest) -> list[tuple[str, str]]:
        """The lists beside this one that the user may open, each with its address."""
        models = [model for model in (Endpoint, Delivery) if model is not self.model]
        shown = [self.admin_site._registry[model] for model in models if model in self.admin_site._registry]
        return [
            (
                str(capfirst(each.opts.verbose_name_plural)),
                reverse(f"{self.admin_site.name}:timeline_webhooks_{each.opts.model_name}_changelist"),
            )
            for each in shown
            if each.has_view_or_change_permission(request)
        ]

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Refuse first who may see none: Django says before that whether there is such a one."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        return super().history_view(request, object_id, self.with_bar(request, extra_context))

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """Act on those that were selected, unless one of them is none that could be here: Django would look for it."""
        try:
            for key in request.POST.getlist("_selected_action"):
                self.opts.pk.clean(key, None)
        except ValidationError:
            self.message_user(request, _("Nothing was changed: one of those selected is not here."), messages.WARNING)
            return None
        answer: HttpResponse | None = super().response_action(request, queryset, *more, **named)
        return answer
