"""Links that open a booking: signed, so that nobody can guess another's."""

from __future__ import annotations

from django.core import signing
from django.http import Http404
from django.shortcuts import get_object_or_404

from project.portal.models import Booking

_BOOKING = signing.Signer(salt="my booking")


def booking_token(booking: Booking) -> str:
    """What opens the page of a booking, with all that its applicant can do there."""
    return _BOOKING.sign(str(booking.pk))


def booking_of(token: str) -> Booking:
    """
    Find the booking that a link opens.

    Raises:
        Http404: for a link that is not ours, as for a booking that is not there.
    """
    try:
        pk = _BOOKING.unsign(token)
    except signing.BadSignature:
        raise Http404("There is no such page.") from None
    return get_object_or_404(Booking, pk=pk)
