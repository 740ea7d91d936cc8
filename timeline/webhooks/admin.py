"""The admin: endpoints, with what is done to them. Deliveries are in ``admin_deliveries``."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Case, QuerySet, Value, When
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from timeline.clocks import story_now
from timeline.exceptions import DateOutOfRange, InvalidInput
from timeline.reading.tallies import Amount
from timeline.store.transactions import atomic
from timeline.timing import check_time
from timeline.webhooks.admin_deliveries import DeliveryAdmin, badge
from timeline.webhooks.admin_lists import FRAME, Alarming, OnTheBar
from timeline.webhooks.admin_topics import TopicsField, titled
from timeline.webhooks.disabling import (
    MAX_COUNTED,
    delete_endpoints,
    deliveries_to,
    disable,
    enable,
    lock_endpoints,
    replay,
    replayable,
    rotate,
)
from timeline.webhooks.models import Delivery, Disabled, Endpoint
from timeline.webhooks.opening import check_endpoint
from timeline.webhooks.retry import PAUSED_AFTER
from timeline.webhooks.secrets import encrypted, new_secret
from timeline.webhooks.shares import Share, charts_of, shares_of
from timeline.webhooks.told import standing_of

__all__ = ["DeliveryAdmin", "EndpointAdmin"]


class EndpointForm(forms.ModelForm):  # type: ignore[type-arg]
    """What of an endpoint is written by people."""

    topics = TopicsField()

    class Meta:
        model = Endpoint
        fields = ("url", "description", "topics", "ordered")
        help_texts: ClassVar = {
            "url": gettext_lazy("It begins with https. Deliveries are sent there, signed."),
            "description": gettext_lazy("What people call it, here and in messages to them."),
        }

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        try:
            check_endpoint(given.get("url", ""), given.get("topics"))
        except ValidationError as error:
            for field, problems in error.message_dict.items():
                if field in given:
                    self.add_error(field, problems)
        return given


MISSED: Final = "missed"
WHICH: Final = ((MISSED, gettext_lazy("what did not arrive")), ("all", gettext_lazy("also what has arrived")))


def _time(label: Any, **options: Any) -> forms.DateTimeField:
    widget = forms.DateTimeInput(format="%Y-%m-%dT%H:%M", attrs={"type": "datetime-local"})
    return forms.DateTimeField(label=label, widget=widget, **options)


class ReplayForm(forms.Form):
    """Which deliveries: of which time, by when they were written."""

    since = _time(pgettext_lazy("timeline", "Since"))
    until = _time(pgettext_lazy("timeline", "Until"), required=False, help_text=gettext_lazy("Empty: until now."))
    which = forms.ChoiceField(label=pgettext_lazy("timeline", "Which"), choices=WHICH, initial=MISSED)

    def __init__(self, *args: Any, now: datetime, **options: Any) -> None:
        super().__init__(*args, **options)
        self.now = now

    def clean_since(self) -> datetime:
        return _checked(self.cleaned_data["since"])

    def clean_until(self) -> datetime:
        """Take now if it is empty, so that no more is sent than what was counted."""
        return _checked(self.cleaned_data["until"] or self.now)

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if "since" in given and "until" in given and given["since"] >= given["until"]:
            self.add_error("until", _("Give a later time."))
        return given


def _checked(at: datetime) -> datetime:
    try:
        return check_time("at", at)
    except DateOutOfRange:
        raise forms.ValidationError(_("Give a time between the years 1970 and 9000.")) from None


class Replaying(OnTheBar):
    """Sends what was of a time again."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.replay_view)
        return [path("<path:object_id>/replay/", view, name="timeline_webhooks_endpoint_replay"), *super().get_urls()]

    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Count what is meant and ask; once that is confirmed, send it again."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        endpoint = self.get_object(request, unquote(object_id))
        if endpoint is None:
            raise Http404(_("There is no such endpoint."))
        using = self.get_queryset(request).db
        form = ReplayForm(request.POST if request.method == "POST" else None, now=story_now(using))
        counted = None
        if form.is_valid():
            if "confirmed" in request.POST:
                self._replay(request, endpoint, form, using)
                return HttpResponseRedirect(self._address("change", endpoint.pk))
            counted = replayable(endpoint, **_chosen(form), using=using).count()
        return self._ask(request, endpoint, form, counted)

    def _replay(self, request: HttpRequest, endpoint: Endpoint, form: ReplayForm, using: str) -> None:
        chosen = _chosen(form)
        try:
            sent = replay(endpoint, **chosen, now=form.now, using=using)
        except InvalidInput as problem:
            self.message_user(request, str(problem), messages.ERROR)
            return
        text = ngettext("%(count)d delivery is sent again.", "%(count)d deliveries are sent again.", sent)
        self.log_change(request, endpoint, text % {"count": sent})
        self.message_user(request, text % {"count": sent}, messages.SUCCESS)

    def _ask(self, request: HttpRequest, endpoint: Endpoint, form: ReplayForm, counted: int | None) -> HttpResponse:
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            **self.with_bar(request),
            "title": pgettext("timeline", "Send again"),
            "endpoint": endpoint,
            "opts": self.opts,
            "frame": FRAME,
            "form": form,
            "counted": counted,
            "chosen": _chosen(form) if counted is not None else {},
            "back": self._address("change", endpoint.pk),
        }
        answer = TemplateResponse(request, "admin/timeline_webhooks/replay.html", context)
        answer["Cache-Control"] = "no-store"
        return answer

    def _address(self, name: str, *args: object) -> str:
        return reverse(f"{self.admin_site.name}:timeline_webhooks_endpoint_{name}", args=args)


def _chosen(form: ReplayForm) -> dict[str, Any]:
    given = form.cleaned_data
    return {"since": given["since"], "until": given["until"], "missed": given["which"] == MISSED}


# Those in trouble first: given up, paused, failing, fine; what a person has disabled is last.
TROUBLE: Final = Case(
    When(disabled_code__in=[Disabled.GONE, Disabled.FAILING], then=Value(0)),
    When(disabled_at=None, failures__gte=PAUSED_AFTER, then=Value(1)),
    When(disabled_at=None, failures__gt=0, then=Value(2)),
    When(disabled_at=None, then=Value(3)),
    default=Value(4),
)
FEW: Final = 3  # Topics that the list names.


@admin.register(Endpoint)
class EndpointAdmin(Alarming, Replaying):
    """Endpoints. A secret is on the page that answers, and nowhere else."""

    form = EndpointForm
    list_display = ("__str__", "standing", "last_day", "told_count", "masked_url")
    readonly_fields = ("created_at", "rotated_at")
    list_per_page = 50  # Of each, deliveries are counted.
    actions = ("rotate_secret", "disable_them", "enable_them")
    ordering = (TROUBLE.asc(), "description", "pk")

    def get_readonly_fields(self, request: HttpRequest, obj: Endpoint | None = None) -> tuple[str, ...]:
        """Show how one does that is there; of a new one there is nothing to tell."""
        return self.readonly_fields if obj else ()

    def get_fields(self, request: HttpRequest, obj: Endpoint | None = None) -> list[Any]:
        """Show the URL to who may change it; to others its host."""
        fields = list(super().get_fields(request, obj))
        hides = obj is not None and not self.has_change_permission(request, obj)
        instead = {"url": "masked_url", "topics": "told_topics"} if hides else {}
        return [instead.get(str(name), name) for name in fields]

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Count, for all endpoints of the page at once, what of the last 24 hours has arrived."""
        found = super().get_changelist_instance(request)
        found.result_list = list(found.result_list)
        using = self.get_queryset(request).db
        shares = shares_of([each.pk for each in found.result_list], now=story_now(using), using=using)
        for each in found.result_list:
            each.share = shares[each.pk]
        return found

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show how it stands and what has arrived, above what is written by people."""
        return super().change_view(
            request,
            object_id,
            form_url,
            {"telling": partial(self._telling, request, object_id), **(extra_context or {})},
        )

    def _telling(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        endpoint, using = self.get_object(request, unquote(object_id)), self.get_queryset(request).db
        if endpoint is None:
            return {}
        where = reverse(f"{self.admin_site.name}:timeline_webhooks_delivery_changelist")
        sees = request.user.has_perm("timeline_webhooks.view_delivery")
        return {
            "standing": standing_of(endpoint),
            "charts": charts_of(endpoint, now=story_now(using), using=using),
            "deliveries": f"{where}?{urlencode({'endpoint__id__exact': endpoint.pk})}" if sees else "",
        }

    @admin.display(description=pgettext_lazy("timeline", "URL"))
    def masked_url(self, endpoint: Endpoint) -> str:
        return endpoint.masked_url

    @admin.display(description=gettext_lazy("what it is told"))
    def told_topics(self, endpoint: Endpoint) -> str:
        return format_html_join(SafeString("<br>"), "{}", ((each,) for each in titled(endpoint.topics)))

    @admin.display(description=gettext_lazy("what it is told"))
    def told_count(self, endpoint: Endpoint) -> str:
        """Its topics, where there are few; else how many."""
        topics = [str(topic) for topic in endpoint.topics]
        if len(topics) <= FEW:
            return ", ".join(topics)
        return ngettext("%(count)d topic", "%(count)d topics", len(topics)) % {"count": len(topics)}

    @admin.display(description=gettext_lazy("how it stands"), ordering=TROUBLE.asc())
    def standing(self, endpoint: Endpoint) -> str:
        return badge(standing_of(endpoint))

    @admin.display(description=pgettext_lazy("timeline", "last 24 hours"))
    def last_day(self, endpoint: Endpoint) -> str:
        share: Share = endpoint.share  # type: ignore[attr-defined]
        return " · ".join([share.words(_("24 h")), *share.rest])

    def save_model(self, request: HttpRequest, obj: Endpoint, form: Any, change: bool) -> None:
        """Give a new one its secret, to be shown once."""
        if change:
            obj.save(update_fields=list(EndpointForm.Meta.fields))
            return
        obj.shown_secret = new_secret()  # type: ignore[attr-defined]
        obj.secret = encrypted(obj.shown_secret)  # type: ignore[attr-defined]
        obj.created_at = story_now(DEFAULT_DB_ALIAS)
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Endpoint, post_url_continue: str | None = None) -> HttpResponse:
        """Show the secret in the answer itself: a message would be stored."""
        return self._showing(request, obj, obj.shown_secret)  # type: ignore[attr-defined]

    def _showing(self, request: HttpRequest, endpoint: Endpoint, secret: str) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            **self.with_bar(request),
            "title": pgettext("timeline", "Secret"),
            "opts": self.opts,
            "endpoint": endpoint,
            "frame": FRAME,
            "secret": secret,
        }
        answer = TemplateResponse(request, "admin/timeline_webhooks/secret.html", context)
        answer["Cache-Control"] = "no-store"
        return answer

    @admin.action(description=gettext_lazy("Give another secret to the selected endpoint"), permissions=["change"])
    def rotate_secret(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> HttpResponse | None:
        """Rotate one, and show the new secret."""
        endpoints = list(queryset[:2])
        if len(endpoints) != 1:
            self.message_user(request, _("Select one endpoint."), messages.ERROR)
            return None
        using = queryset.db
        with atomic(using=using):
            [endpoint] = lock_endpoints([endpoints[0].pk], using=using).values()
            secret = rotate(endpoint, now=story_now(using), using=using)
        return self._showing(request, endpoint, secret)

    @admin.action(description=gettext_lazy("Disable the selected endpoints"), permissions=["change"])
    def disable_them(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        using = queryset.db
        with atomic(using=using):
            for endpoint in lock_endpoints(queryset.values_list("pk", flat=True), using=using).values():
                if endpoint.is_enabled:
                    disable(endpoint, Disabled.OPERATOR, now=story_now(using), using=using)

    @admin.action(description=gettext_lazy("Enable the selected endpoints"), permissions=["change"])
    def enable_them(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        using = queryset.db
        with atomic(using=using):
            for endpoint in lock_endpoints(queryset.values_list("pk", flat=True), using=using).values():
                if not endpoint.is_enabled:
                    enable(endpoint, now=story_now(using), using=using)

    def get_deleted_objects(
        self, objs: Iterable[Endpoint], request: HttpRequest
    ) -> tuple[list[str], dict[str, Any], set[str], list[str]]:
        """Say how many deliveries go with endpoints, not which. Who may delete an endpoint may delete what was sent to it."""
        endpoints = list(objs)
        count = deliveries_to([endpoint.pk for endpoint in endpoints], using=self.get_queryset(request).db)
        counts = {
            str(self.opts.verbose_name_plural): str(Amount(len(endpoints))),
            str(Delivery._meta.verbose_name_plural): str(Amount(min(count, MAX_COUNTED), count > MAX_COUNTED)),
        }
        said_of_each = [f"{capfirst(self.opts.verbose_name)}: {endpoint}" for endpoint in endpoints]
        refused = set() if self.has_delete_permission(request) else {str(self.opts.verbose_name)}
        return said_of_each, counts, refused, []

    def delete_model(self, request: HttpRequest, obj: Endpoint) -> None:
        delete_endpoints([obj.pk], using=self.get_queryset(request).db)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        delete_endpoints(queryset.values_list("pk", flat=True), using=queryset.db)
