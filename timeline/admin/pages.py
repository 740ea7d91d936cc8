"""What all pages share: whose tasks they show, the frame around them, and the addresses they lead to."""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.apps import apps
from django.contrib.admin import ModelAdmin
from django.db import router
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from timeline.admin.asking import asked
from timeline.dispatch.noticing_silence import is_silent, silent
from timeline.live.streaming import can_stream
from timeline.models import ScheduledTask
from timeline.policy import get_policy
from timeline.store.gathering import gather_now

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import TimelinePolicy

    Base = ModelAdmin[ScheduledTask]
else:
    Base = ModelAdmin


PAGES: Final = (
    "changelist",
    "act",
    "bulk",
    "entity",
    "find",
    "dead",
    "health",
    "inventory",
    "limits",
    "matching",
    "holds",
    "hold",
    "people",
    "plan",
    "redrive",
    "say",
    "what_if",
)


# What a request keeps.
_POLICY: Final = "_timeline_policy"
_UNPOLLED: Final = "_timeline_unpolled"

# Pages whose content follows what happens while they are open. The list refreshes a part of itself.
LIVE: Final = frozenset(
    {"bulk", "bulk_action", "dead", "entity", "health", "holds", "inventory", "limits", "people", "task", "timeline"}
)


# Signs that turn the direction of the text after them, also of ours: an address would read as another one.
_TURNS: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_TURNING: Final = re.compile(f"<[^>]*>|{_TURNS.pattern}")

_ANY_TASK: Final = "00000000-0000-0000-0000-000000000000"


class Shown(TemplateResponse):
    """
    A page on which nothing that somebody has written changes how the rest reads: signs that would do so show as �. What
    fields send and where links lead stays as it is.
    """

    @property
    def rendered_content(self) -> str:
        """The page."""
        text = super().rendered_content
        return _TURNING.sub(_shown, text) if _TURNS.search(text) else text


def _shown(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith("<") else "\N{REPLACEMENT CHARACTER}"


def policy_of(request: HttpRequest) -> TimelinePolicy:
    """Who may see and do what: one for the request, so that what it has found out is asked once."""
    known: tuple[object, TimelinePolicy] | None = request.__dict__.get(_POLICY)
    if known is None or known[0] != request.user.pk:
        known = request.__dict__[_POLICY] = (request.user.pk, get_policy())
    return known[1]


class Pages(Base):
    """
    Base of the pages.

    ``using`` names the database whose tasks are shown; left empty, it is where the routers have them written. A second
    admin site, with a subclass of ``TaskAdmin``, shows another.
    """

    using = ""

    @property
    def alias(self) -> str:
        """The database whose tasks are shown."""
        return self.using or router.db_for_write(ScheduledTask)

    def now_of(self, request: HttpRequest) -> datetime:
        """Story time, and in the same statement what each page says at its top: whether nobody polls."""
        now, [unpolled] = gather_now([silent(using=self.alias).values_list("pk")], using=self.alias)
        request.__dict__[_UNPOLLED] = bool(unpolled)
        return now

    def visible(self, request: HttpRequest) -> ScheduledTaskQuerySet:
        """The tasks that the user may see. Each page starts here."""
        return policy_of(request).visible(ScheduledTask.objects.using(self.alias), request.user)

    def page(self, request: HttpRequest, name: str, title: str, now: datetime, context: dict[str, Any]) -> HttpResponse:
        """Fill in a template; nobody keeps a copy of the answer."""
        request.current_app = self.admin_site.name
        shared = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "now": now,
            "zone": timezone.get_default_timezone(),
            "zone_name": timezone.get_default_timezone_name(),
            "site_name": self.admin_site.name,
            "frame": "admin/timeline/unfold.html" if apps.is_installed("unfold") else "admin/base_site.html",
            "who": str(request.user.pk),
            "urls": {name: self.address(name) for name in PAGES},
            # What comes before and after its key: an address is made up by Django for one task, not for hundreds.
            "task_at": self.address("change", _ANY_TASK).split(_ANY_TASK),
            "live": request.get_full_path() if name in LIVE and request.method == "GET" else "",
            "is_told": can_stream(request),
            "login": self.login_for(request.get_full_path()),
            # Asked where it is shown, unless it is known.
            "nobody_polls": request.__dict__.get(_UNPOLLED, partial(is_silent, using=self.alias)),
        }
        response = Shown(request, f"admin/timeline/{name}.html", {**shared, **context})
        response["Cache-Control"] = "no-store, private"
        return response

    def address(self, name: str, *args: object) -> str:
        """Address of a page."""
        return reverse(f"{self.admin_site.name}:timeline_scheduledtask_{name}", args=args)

    def login_for(self, where: str) -> str:
        """Address of the login that leads back to a page."""
        return f"{reverse(f'{self.admin_site.name}:login')}?{urlencode({'next': where})}"

    def list_as_left(self, given: QueryDict) -> str:
        """Address of the list as a form says it was left: only what a question may say is taken over."""
        where = asked(QueryDict(given.get("where", "").removeprefix("?"))).where()
        return self.address("changelist") + (where if where != "?" else "")
