"""The page of an endpoint that sends again what it was sent in a time: it counts, asks, and then does it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from timeline.clocks import story_now
from timeline.exceptions import DateOutOfRange, InvalidInput
from timeline.timing import check_time
from timeline.webhooks.admin_lists import FRAME, Themed
from timeline.webhooks.disabling import replay, replayable
from timeline.webhooks.models import Endpoint

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
