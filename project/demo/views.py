"""The page of the demo: the customer's page and the operator's beside each other, a clock, and what may go wrong."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import user_passes_test
from django.db import DEFAULT_DB_ALIAS
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from project.accounts.links import timeline_token
from project.accounts.models import User
from project.accounts.services import configure_payment
from project.demo import jobs
from project.demo.clock import STANDING, SettableClock
from project.demo.mailing import let_be_down, sign_of_outage
from project.demo.operators import EMAIL
from project.demo.worker import killed, wish
from project.portal.links import booking_of, booking_token
from project.portal.services import SEARCHED_FOR, apply
from timeline.admin.pages import PAGES
from timeline.clocks import story_now
from timeline.models import ref_of

ADA: Final = "ada@example.com"
PASSPORT: Final = "ada.passport@example.com"  # So that words that find the customer find no booking beside her.
# Seconds of a day, and what the button says.
SPEEDS: Final = {"stand": STANDING, "slow": 24.0, "usual": 12.0, "fast": 2.0}
_WORDS: Final = {"stand": "Pause", "slow": "1 h a second", "usual": "2 h a second", "fast": "12 h a second"}

_PLACES: Final = {
    "attention": "Needs attention",
    "changelist": "Upcoming",
    "dead": "Dead letters",
    "health": "Health",
    "inventory": "Timelines",
}

_for_operators = user_passes_test(lambda user: user.is_staff, login_url="admin:login")


@never_cache
@require_GET
def demo(request: HttpRequest) -> HttpResponse:
    """Show the page; with the key that was printed, to the operator without a password. ``?part``: what changes on it."""
    clock, key = _clock(), os.environ.get("DEMO_KEY", "")
    if key and secrets.compare_digest(request.GET.get("key", "").encode(), key.encode()):
        login(request, User.objects.get(email=EMAIL), "django.contrib.auth.backends.ModelBackend")
        return redirect("demo")
    return _shown(request, clock)


@_for_operators
def _shown(request: HttpRequest, clock: SettableClock) -> HttpResponse:
    token = request.GET.get("booking", "")
    ada = User.objects.filter(email=ADA).first()
    context = {
        "now": story_now(DEFAULT_DB_ALIAS),
        "speeds": [(name, _WORDS[name], SPEEDS[name] == clock.seconds_per_day) for name in SPEEDS],
        "is_standing": clock.seconds_per_day == STANDING,
        "is_down": sign_of_outage().exists(),
        "is_killed": killed().exists() or wish().exists(),
        "ada": ada,
        "has_jobs": jobs.can_be_put(),
        "job": jobs.how_it_stands(f"{request.scheme}://{request.get_host()}") if jobs.can_be_put() else {},
        "frames": _frames_of_booking(token) if token else _frames_of_ada(ada),
        "places": _places(ada),
    }
    return render(request, "demo/_bar.html" if "part" in request.GET else "demo/demo.html", context)


@require_POST
@_for_operators
def press(request: HttpRequest, button: str) -> HttpResponse:
    """Do what a button says. The script of the page hears which pages to show; without it, the whole page is shown anew."""
    clock = _clock()
    if button not in _BUTTONS:
        raise Http404
    shown = _BUTTONS[button](request, clock)
    if request.headers.get("X-Requested-With") == "fetch":
        return JsonResponse(shown)
    return redirect(f"{reverse('demo')}?{urlencode(shown)}" if shown.get("booking") else "demo")


def _set_clock(request: HttpRequest, clock: SettableClock) -> dict[str, str]:
    if (speed := SPEEDS.get(request.POST.get("speed", ""))) is not None:
        clock.run_at(speed)
    return {}


def _break_mail(_request: HttpRequest, _clock: SettableClock) -> dict[str, str]:
    """The operator looks where failures come up."""
    let_be_down(not sign_of_outage().exists())
    return {"operator": reverse("admin:timeline_scheduledtask_attention")}


def _kill(_request: HttpRequest, _clock: SettableClock) -> dict[str, str]:
    """The operator looks where it shows that nobody polls, and then that somebody does again."""
    wish().touch()
    return {"operator": reverse("admin:timeline_scheduledtask_health")}


def _pay(_request: HttpRequest, _clock: SettableClock) -> dict[str, str]:
    ada = User.objects.filter(email=ADA).first()
    if ada is not None and ada.payment_configured_at is None and ada.trial_closed_at is None:
        configure_payment(ada, now=story_now(DEFAULT_DB_ALIAS))
    return _frames_of_ada(ada)


def _apply(_request: HttpRequest, _clock: SettableClock) -> dict[str, str]:
    """Ada wants a passport. Where the page goes, she is asked for a code."""
    now = story_now(DEFAULT_DB_ALIAS)
    reference = f"passport-{secrets.token_hex(4)}"
    until = now + SEARCHED_FOR * settings.PORTAL_PACE
    booking = apply("Ada", PASSPORT, "secret", now=now, search_until=until, reference=reference)
    token = booking_token(booking)
    return {"booking": token, **_frames_of_booking(token)}


def _export(_request: HttpRequest, _clock: SettableClock) -> dict[str, str]:
    """The operator sees the row of what was enqueued."""
    ada = User.objects.filter(email=ADA).first()
    return {"operator": _task_page(jobs.export(ada))} if ada is not None and jobs.can_be_put() else {}


def _put_job(_request: HttpRequest, _clock: SettableClock) -> dict[str, str]:
    """The same of a job for a worker in Node."""
    return {"operator": _task_page(jobs.put(now=story_now(DEFAULT_DB_ALIAS)))} if jobs.can_be_put() else {}


_BUTTONS: Final[dict[str, Callable[[HttpRequest, SettableClock], dict[str, str]]]] = {
    "clock": _set_clock,
    "mail": _break_mail,
    "worker": _kill,
    "pay": _pay,
    "apply": _apply,
    "export": _export,
    "job": _put_job,
}


def _frames_of_ada(ada: User | None) -> dict[str, str]:
    if ada is None:
        return {"customer": reverse("sign-up"), "operator": reverse("admin:timeline_scheduledtask_changelist")}
    return {"customer": reverse("my-timeline", args=[timeline_token(ada)]), "operator": _entity_page(ada)}


def _frames_of_booking(token: str) -> dict[str, str]:
    return {"customer": reverse("booking", args=[token]), "operator": _entity_page(booking_of(token))}


def _entity_page(entity: Any) -> str:
    ref = ref_of(entity)
    return f"{reverse('admin:timeline_scheduledtask_entity')}?{urlencode({'label': ref.label, 'id': ref.id})}"


def _task_page(key: UUID) -> str:
    return reverse("admin:timeline_scheduledtask_change", args=[key])


def _places(ada: User | None) -> list[tuple[str, str]]:
    """Pages of the operator to go to: address, and what the link says."""
    there = [
        (reverse(f"admin:timeline_scheduledtask_{name}"), words) for name, words in _PLACES.items() if name in PAGES
    ]
    return [(_entity_page(ada), "Ada"), *there] if ada is not None else there


def _clock() -> SettableClock:
    """The clock of the demo; where none runs, or another story, there is no such page."""
    clock = SettableClock.running()
    if clock is None or settings.STORY != "trial":
        raise Http404
    return clock
