"""The pages of bookings: apply, see how it stands and do what it asks for; and the desk of operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import DEFAULT_DB_ALIAS
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from project.portal import services
from project.portal.forms import ApplicationForm, ChoiceForm, CodeForm, PasswordForm
from project.portal.links import booking_of, booking_token
from project.portal.models import Booking
from project.portal.presenting import cases, present, slot_in_words
from project.portal.states import FOR_OPERATORS
from timeline.clocks import story_now
from timeline.exceptions import NoOpenRun, TransitionNotAllowed
from timeline.live import live_page

RIGHT: Final = "portal.resolve_booking"


@sensitive_post_parameters("password")
def apply(request: HttpRequest) -> HttpResponse:
    """Show the form; take in an application."""
    form = ApplicationForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        booking = services.apply(
            given["name"],
            given["email"],
            given["password"],
            now=story_now(DEFAULT_DB_ALIAS),
            latest_hour=given["latest_hour"],
        )
        return redirect("booking", token=booking_token(booking))
    return render(request, "portal/apply.html", {"form": form}, status=400 if form.errors else 200)


@never_cache
@require_GET
@live_page(lambda _request, token: booking_of(token))
def booking(request: HttpRequest, token: str) -> HttpResponse:
    """Show how a booking stands, its way so far, and what it asks for; it follows what happens to it."""
    return _shown(request, booking_of(token), token)


@sensitive_post_parameters("code", "password")
@require_POST
def act(request: HttpRequest, token: str, what: str) -> HttpResponse:
    """Do what a booking asks for. Where it has moved on meanwhile nothing is written, and the page says so (409)."""
    found = booking_of(token)
    if what not in _DEEDS:
        raise Http404
    form = _form_of(what, found, request.POST)
    if form is not None and not form.is_valid():
        return _shown(request, found, token, form=form, status=400)
    try:
        _DEEDS[what](found, form.cleaned_data if form is not None else {})
    except TransitionNotAllowed:
        return _shown(request, found, token, moved_on=True, status=409)
    return redirect("booking", token=token)


@never_cache
@require_GET
@permission_required(RIGHT, login_url="admin:login")
@live_page()
def desk(request: HttpRequest) -> HttpResponse:
    """List what waits for an operator, the oldest first; it follows what happens."""
    return render(request, "portal/desk.html", {"cases": cases(), "now": story_now(DEFAULT_DB_ALIAS)})


@require_POST
def resolve(request: HttpRequest, pk: int, what: str) -> HttpResponse:
    """Say that a booking can go on, or that nothing is to be done. Who lacks the right hears nothing of what there is."""
    if not request.user.has_perm(RIGHT):
        raise PermissionDenied
    deeds = {"resolve": services.resolve, "give-up": services.give_up}
    if what not in deeds:
        raise Http404
    if (state := request.POST.get("state", "")) not in FOR_OPERATORS:
        raise BadRequest
    case = get_object_or_404(Booking, pk=pk)
    try:
        deeds[what](case, actor=request.user.get_username(), state=state)
    except (TransitionNotAllowed, NoOpenRun):
        context = {"cases": cases(), "now": story_now(DEFAULT_DB_ALIAS), "moved_on": case}
        return render(request, "portal/desk.html", context, status=409)
    return redirect("booking-desk")


_DEEDS: Final[dict[str, Callable[[Booking, dict[str, Any]], None]]] = {
    "code": lambda booking, given: services.give_code(booking, given["code"]),
    "password": lambda booking, given: services.give_password(booking, given["password"]),
    "choice": lambda booking, given: services.choose(booking, given["slot"]),
    "documents": lambda booking, _given: services.give_documents(booking),
    "payment": lambda booking, _given: services.pay(booking),
    "cancel": lambda booking, _given: services.cancel(booking),
}


def _form_of(what: str, booking: Booking, data: Any = None) -> Form | None:
    """The form of what a booking asks for; None: a button is enough."""
    if what == "choice":
        return ChoiceForm(data, offers=[(slot, slot_in_words(slot)) for slot in booking.offers])
    return {"code": CodeForm, "password": PasswordForm}[what](data) if what in ("code", "password") else None


def _shown(
    request: HttpRequest,
    booking: Booking,
    token: str,
    *,
    form: Form | None = None,
    moved_on: bool = False,
    status: int = 200,
) -> HttpResponse:
    page = present(booking)
    context = {
        "booking": booking,
        "token": token,
        "page": page,
        "form": form if form is not None or page is None else _form_of(page.asks, booking),
        "moved_on": moved_on,
        "slot": slot_in_words(booking.slot) if booking.slot else "",
        "inbox": f"{settings.PORTAL_URL}/inbox/{booking.reference}",
    }
    response = render(request, "portal/booking.html", context, status=status)
    response["Referrer-Policy"] = "same-origin"  # The link is the key to the booking.
    return response
