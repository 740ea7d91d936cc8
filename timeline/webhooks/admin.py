"""The admin: endpoints, with what is done to them, and the log of deliveries."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.text import Truncator, capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from timeline.clocks import story_now
from timeline.exceptions import DateOutOfRange, InvalidInput
from timeline.reading.tallies import Amount
from timeline.store.transactions import atomic
from timeline.timing import check_time
from timeline.webhooks.admin_lists import FRAME, Alarming, Themed, asked_of_choices, asked_of_moment, asked_of_relation
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
from timeline.webhooks.models import Attempt, Delivery, Disabled, Endpoint, State
from timeline.webhooks.opening import check_endpoint
from timeline.webhooks.secrets import encrypted, new_secret

MAX_RECEIVER: Final = 48  # Characters, in the list of deliveries.


class _Decoder(json.JSONDecoder):
    """Calls each text no JSON that cannot be read, or not be shown: it is too deep, has a number too long, or half a letter."""

    def decode(self, s: str, *args: Any) -> Any:
        try:
            read = super().decode(s, *args)
            json.dumps(read, ensure_ascii=False).encode()
            return read
        except json.JSONDecodeError:
            raise
        except (ValueError, RecursionError):
            raise json.JSONDecodeError("It cannot be read.", s, 0) from None


class TopicsField(forms.JSONField):
    """A list as JSON, whatever is typed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"decoder": _Decoder})


class EndpointForm(forms.ModelForm):  # type: ignore[type-arg]
    """What of an endpoint is written by people."""

    class Meta:
        model = Endpoint
        fields = ("url", "description", "topics", "ordered")
        field_classes: ClassVar = {"topics": TopicsField}
        help_texts: ClassVar = {
            "topics": gettext_lazy(
                'A list as JSON: ["task.discarded", "task.completed.trial"]. A topic that does not exist is refused, and the'
                " answer names those that are similar."
            ),
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


class Replaying(Themed):
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
            "title": pgettext("timeline", "Send again"),
            "endpoint": endpoint,
            "opts": self.opts,
            "frame": FRAME,
            "zone_name": timezone.get_current_timezone_name(),
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


@admin.register(Endpoint)
class EndpointAdmin(Alarming, Replaying):
    """Endpoints. A secret is on the page that answers, and nowhere else."""

    form = EndpointForm
    list_display = ("__str__", "failures", "failing_since", "disabled_at", "disabled_code")
    readonly_fields = ("created_at", "failures", "failing_since", "disabled_at", "disabled_code", "rotated_at")
    actions = ("rotate_secret", "disable_them", "enable_them")

    def get_readonly_fields(self, request: HttpRequest, obj: Endpoint | None = None) -> tuple[str, ...]:
        """Show how one does that is there; of a new one there is nothing to tell."""
        return self.readonly_fields if obj else ()

    def get_fields(self, request: HttpRequest, obj: Endpoint | None = None) -> list[Any]:
        """Show the URL to who may change it; to others its host."""
        fields = list(super().get_fields(request, obj))
        hides = obj is not None and not self.has_change_permission(request, obj)
        return ["masked_url" if hides and name == "url" else name for name in fields]

    @admin.display(description=pgettext_lazy("timeline", "URL"))
    def masked_url(self, endpoint: Endpoint) -> str:
        return endpoint.masked_url

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


class AttemptInline(admin.TabularInline):  # type: ignore[type-arg]
    """The tries of a delivery, as a table that fits on a phone."""

    model = Attempt
    template = "admin/timeline_webhooks/attempts.html"
    fields = readonly_fields = ()
    ordering = ("id",)
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Delivery)
class DeliveryAdmin(Alarming):
    """The log of deliveries: nothing in it is written by hand."""

    list_display = ("topic", "receiver", "about", "state", "attempts", "status", "created_at")
    list_filter = ("state", "endpoint", "created_at")
    lookups: ClassVar = {
        **asked_of_choices("state", State.choices),
        **asked_of_relation("endpoint"),
        **asked_of_moment("created_at"),
    }
    list_select_related = ("endpoint",)
    ordering = ("-id",)
    show_full_result_count = False
    inlines = (AttemptInline,)
    fields = readonly_fields = (
        *("endpoint", "topic", "message_id", "state", "code", "attempts", "status", "error"),
        *("created_at", "due_at", "ended_at", "body"),
    )
    actions = ("send_again",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=pgettext_lazy("timeline", "endpoint"), ordering="endpoint")
    def receiver(self, delivery: Delivery) -> str:
        """What its endpoint is called: an address may be long."""
        return Truncator(delivery.endpoint).chars(MAX_RECEIVER)

    @admin.display(description=pgettext_lazy("timeline", "entity"))
    def about(self, delivery: Delivery) -> str:
        if not delivery.entity_label:
            return pgettext("timeline", "the system")
        return f"{delivery.entity_label}:{delivery.entity_id}"

    @admin.display(description=pgettext_lazy("timeline", "message id"))
    def message_id(self, delivery: Delivery) -> str:
        return delivery.message_id

    def has_send_again_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("timeline_webhooks.change_endpoint")

    @admin.action(description=gettext_lazy("Send the selected deliveries again"), permissions=["send_again"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        """Send what has ended again, with the same id."""
        if not self.has_send_again_permission(request):
            raise PermissionDenied
        using, sent = queryset.db, 0
        for endpoint in Endpoint.objects.using(using).filter(pk__in=queryset.order_by().values("endpoint")):
            chosen = queryset.order_by().filter(endpoint=endpoint).values_list("pk", flat=True)
            try:
                sent += replay(endpoint, only=chosen, now=story_now(using), using=using)
            except InvalidInput as problem:
                self.message_user(request, str(problem), messages.ERROR)
        said = ngettext("%(count)d delivery is sent again.", "%(count)d deliveries are sent again.", sent)
        self.message_user(request, said % {"count": sent})
