"""The pages: sign up, my timeline and what a customer can do there, and the call of the chat script."""

from __future__ import annotations

from datetime import datetime

from django.db import DEFAULT_DB_ALIAS
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from project.accounts import mails, services
from project.accounts.forms import SignUpForm
from project.accounts.links import script_token, timeline_token, user_of_script, user_of_timeline
from project.accounts.models import User
from project.accounts.presenting import TITLES, present
from timeline.calendar.tokens import calendar_token
from timeline.calendar.views import CalendarView
from timeline.clocks import story_now
from timeline.models import ScheduledTask

EXTENSION_DAYS = 14


def sign_up(request: HttpRequest) -> HttpResponse:
    """Show the form; open an account. An address that has one gets its link by mail again, and nobody else does."""
    form = SignUpForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        email, website = form.cleaned_data["email"], form.cleaned_data["website"]
        if (known := User.objects.filter(email=email).first()) is None:
            user = services.sign_up(email, website, now=_now())
            mails.send_welcome(user, _link(request, user))
            return redirect("my-timeline", token=timeline_token(user))
        is_sent = mails.send_welcome(known, _link(request, known))
        said = "We have mailed it the link again." if is_sent else "Its link could not be mailed; try again later."
        form.add_error("email", f"This address has an account. {said}")
    return render(request, "accounts/sign_up.html", {"form": form}, status=400 if form.errors else 200)


@never_cache
@require_GET
def my_timeline(request: HttpRequest, token: str) -> HttpResponse:
    """Show a customer's own upcoming, foreseen and past tasks; with ``?part`` just what changes, for the light refresh."""
    user = user_of_timeline(token)
    now = _now()
    context = {
        "user": user,
        "token": token,
        "now": now,
        "page": present(user, now=now),
        "extension_days": EXTENSION_DAYS,
        "calendar_url": user.is_active
        and user.password
        and request.build_absolute_uri(reverse("my-calendar", args=[calendar_token(user)])),
        "script_url": request.build_absolute_uri(reverse("script-call", args=[script_token(user)])),
    }
    template = "accounts/_timeline.html" if "part" in request.GET else "accounts/my_timeline.html"
    response = render(request, template, context)
    response["Referrer-Policy"] = "same-origin"  # The link is the key to the account.
    return response


class Calendar(CalendarView):
    """What is ahead of a customer, in their own calendar program."""

    def title(self, task: ScheduledTask) -> str:
        """In the words of the page; what it has none for is nothing to customers."""
        return TITLES.get(task.task_key, "")


@require_POST
def configure_payment(_request: HttpRequest, token: str) -> HttpResponse:
    """Begin to pay."""
    user = user_of_timeline(token)
    if user.payment_configured_at is None and user.trial_closed_at is None:
        services.configure_payment(user, now=_now())
    return redirect("my-timeline", token=token)


@require_POST
def close_trial(_request: HttpRequest, token: str) -> HttpResponse:
    """Give the trial up."""
    user = user_of_timeline(token)
    if user.payment_configured_at is None and user.trial_closed_at is None:
        services.close_trial(user, now=_now())
    return redirect("my-timeline", token=token)


@require_POST
def extend_trial(_request: HttpRequest, token: str) -> HttpResponse:
    """Move the end of the trial."""
    user = user_of_timeline(token)
    if user.payment_configured_at is None and user.trial_closed_at is None:
        services.extend_trial(user, EXTENSION_DAYS, now=_now())
    return redirect("my-timeline", token=token)


@csrf_exempt  # Called from other people's websites; the token opens nothing.
@require_POST
def script_call(_request: HttpRequest, token: str) -> HttpResponse:
    """The chat script says that it is there."""
    services.note_script_call(user_of_script(token), now=_now())
    return HttpResponse(status=204, headers={"Access-Control-Allow-Origin": "*"})


def _link(request: HttpRequest, user: User) -> str:
    return request.build_absolute_uri(reverse("my-timeline", args=[timeline_token(user)]))


def _now() -> datetime:
    return story_now(DEFAULT_DB_ALIAS)
