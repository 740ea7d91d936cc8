"""What people call the events of a booking: in the admin, where its states have the words of the applicant's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

EVENT_WORDS: Final[Mapping[str, str | Promise]] = {
    "booking.submitted": _("The application was sent"),
    "input.ok": _("It is complete"),
    "input.bad": _("It makes no sense"),
    "portal.open": _("The portal is open"),
    "portal.closed": _("The portal is closed"),
    "release.reached": _("The portal opens"),
    "sla.release": _("It has not opened for too long"),
    "auth.ok": _("Signed in"),
    "auth.otp_required": _("The portal asks for a code"),
    "auth.captcha": _("The portal asks whether somebody is there"),
    "auth.rejected": _("The password was not taken"),
    "otp.given": _("The code was given"),
    "otp.timed_out": _("No code was given in time"),
    "otp.wrong": _("The code was wrong"),
    "operator.resolved": _("It can go on"),
    "operator.gave_up": _("An operator gave it up"),
    "sla.captcha": _("Nobody has answered the portal in time"),
    "credentials.updated": _("A new password was given"),
    "sla.credentials": _("No new password was given in time"),
    "slot.found": _("Appointments were found"),
    "slot.none": _("Nothing is free"),
    "look.again": _("Look again"),
    "search.over": _("The time for searching is over"),
    "slot.suits": _("One of them suits"),
    "slot.ask": _("The applicant is to choose"),
    "slot.chosen": _("An appointment was chosen"),
    "choice.timed_out": _("Nobody chose in time"),
    "slot.held": _("The appointment was reserved"),
    "slot.gone": _("The appointment was gone"),
    "form.open": _("The form was opened"),
    "form.done": _("The form is filled in"),
    "form.documents": _("The portal wants documents"),
    "form.fee": _("The portal wants its fee"),
    "documents.given": _("The documents were handed in"),
    "hold.over": _("The reservation is over"),
    "payment.completed": _("The fee was paid"),
    "confirm.ok": _("The portal has confirmed"),
    "confirm.otp_required": _("The portal asks for a second code"),
    "booking.verified": _("The booking is there"),
    "booking.absent": _("The booking is not there"),
    "retry.due": _("Try again"),
    "retries.used_up": _("It was tried often enough"),
    "sla.operator": _("Nobody has looked at it for too long"),
    "portal.error": _("The portal answers with an error"),
    "portal.unknown": _("The portal says something unknown"),
    "booking.cancelled": _("The applicant has given it up"),
    "portal.heartbeat": _("The portal is alive"),
}
