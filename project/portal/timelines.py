"""A booking on a hostile portal, as a machine; and what is cleared away when one has ended."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, Final

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from project.portal import client, models
from project.portal.errors import BadLogin, Captcha, PortalError, SlotGone
from project.portal.event_words import EVENT_WORDS
from project.portal.models import Secret
from project.portal.presenting import WORDS
from project.portal.states import WORKING_ONES, S
from project.portal.table import TABLE
from timeline import Machine, Retry, Then, Timeline, after, after_run, ask, at, created, on, step, task

# How much longer than in earnest everything is waited for: a demonstration whose day takes two seconds has days for minutes.
PACE: Final[int] = settings.PORTAL_PACE
MOST_CODES: Final = 3  # So many wrong ones, and an operator looks.
OFFERS: Final = 5


class Booking(Machine):
    """Books an appointment on a portal that is slow, closed by night, full, and asks for codes."""

    entity = "portal.Booking"
    starts_on = created()
    initial = S.CREATED
    mirror = "state"
    table = TABLE
    working = WORKING_ONES
    titles: ClassVar = {**WORDS, **EVENT_WORDS}
    timers: ClassVar = {
        "release.reached": at("opens_at"),
        "sla.release": on(S.AWAITING_RELEASE, days=2 * PACE),  # Where the portal has not said when it opens.
        "otp.timed_out": on(S.AUTH_OTP_REQUIRED, S.CONFIRM_OTP_REQUIRED, minutes=10 * PACE),
        "sla.captcha": on(S.AUTH_CAPTCHA_REQUIRED, hours=1 * PACE),
        "sla.credentials": on(S.CREDENTIALS_REQUIRED, days=2 * PACE),
        "look.again": on(S.NO_SLOT, minutes=5 * PACE),
        "search.over": at("search_until"),
        "choice.timed_out": on(S.CHOICE_REQUIRED, minutes=30 * PACE),
        "hold.over": on(S.DOCUMENTS_REQUIRED, S.PAYMENT_REQUIRED, minutes=20 * PACE),
        "sla.operator": on(S.OPERATOR_ESCALATED, hours=4 * PACE),
        "retry.due": on(
            S.RETRY_SCHEDULED,
            backoff=Retry(base=timedelta(seconds=30) * PACE, cap=timedelta(hours=1) * PACE, max_attempts=6),
            spent="retries.used_up",
        ),
    }
    errors: ClassVar = {
        SlotGone: "slot.gone",
        PortalError: "portal.error",
        BadLogin: "auth.rejected",
        Captcha: "auth.captcha",
        Exception: "portal.unknown",
    }
    asks: ClassVar = {
        "operator.resolved": ask(_("It can go on"), by="portal.resolve_booking"),
        "operator.gave_up": ask(_("Give it up"), by="portal.resolve_booking"),
    }
    tells: ClassVar = (S.BOOKED, S.FAILED, S.EXPIRED, S.CANCELLED, "auth.otp_required")
    most_moves = 300
    spinning = "portal.unknown"

    @task(on(S.VALIDATING))
    def validate(self, booking: models.Booking) -> Then:
        """See that it makes sense at all: a name, and an hour at which the office is open."""
        return Then("input.ok" if booking.name.strip() and booking.latest_hour > 8 else "input.bad")

    @task(on(S.QUEUED), atomic=False)
    def queue(self, booking: models.Booking) -> Then:
        """Ask whether the portal is open, and if it is not, when it will be."""
        answer = client.status()
        if answer["open"]:
            return Then("portal.open")
        _change(booking, opens_at=datetime.fromisoformat(answer["opens_at"]))
        return Then("portal.closed")

    @task(on(S.AUTHENTICATING), atomic=False)
    def sign_in(self, booking: models.Booking) -> Then:
        """Sign in. The portal may want a code, or be sure that somebody is there."""
        answer = client.sign_in(booking.reference, _secret(booking, Secret.Kind.PASSWORD))
        return Then("auth.otp_required") if answer["code"] else Then("auth.ok")

    @task(on(S.AUTH_OTP_SUBMITTING), atomic=False)
    def submit_code(self, booking: models.Booking) -> Then:
        """Hand on the code that the applicant has given; after three wrong ones an operator looks."""
        said = self.hand_over(booking.pk)
        _forget(booking, Secret.Kind.CODE)
        return Then("auth.ok") if said == "right" else self._asked_again(said, S.AUTH_OTP_SUBMITTING, S.AUTHENTICATING)

    @task(on(S.SEARCHING), atomic=False)
    def look(self, booking: models.Booking) -> Then:
        """Look for free appointments."""
        found = client.slots(booking.reference)[:OFFERS]
        _change(booking, offers=found, slot="", hold="")
        return Then("slot.found" if found else "slot.none")

    @task(on(S.SLOT_FOUND))
    def weigh(self, booking: models.Booking) -> Then:
        """Take the first that is early enough; where none is, the applicant is asked."""
        suits = [slot for slot in booking.offers if datetime.fromisoformat(slot).hour < booking.latest_hour]
        if not suits:
            return Then("slot.ask")
        _change(booking, slot=suits[0])
        return Then("slot.suits", slot=suits[0])

    @task(on(S.HOLDING_SLOT), atomic=False)
    def hold_slot(self, booking: models.Booking) -> Then:
        """Reserve it, if nobody was quicker."""
        _change(booking, hold=client.hold(booking.reference, booking.slot))
        return Then("slot.held")

    @task(on(S.SLOT_HELD))
    def open_form(self, _booking: models.Booking) -> Then:
        """The form of a reservation is open from the beginning."""
        return Then("form.open")

    @task(on(S.FILLING_FORM), atomic=False)
    def fill_form(self, booking: models.Booking) -> Then:
        """Fill in the form page by page; it may want documents, or a fee. A page that was taken is not sent again."""
        needs = self.send_page.keyed("applicant")("applicant", booking.pk)
        if not needs and booking.has_documents:
            needs = self.send_page.keyed("documents")("documents", booking.pk)
        events = {"documents": "form.documents", "fee": "form.fee"}
        return Then(events.get(needs, "form.done"))

    @task(on(S.CONFIRMING), atomic=False)
    def confirm(self, booking: models.Booking) -> Then:
        """Book it. If the reservation is gone, an answer may have been lost that it was booked: verifying finds out."""
        answer = client.confirm(booking.reference, booking.hold)
        return Then("confirm.otp_required" if answer["code"] else "confirm.ok")

    @task(on(S.CONFIRM_OTP_SUBMITTING), atomic=False)
    def submit_confirmation(self, booking: models.Booking) -> Then:
        """Hand on the code, and book it; after three wrong ones an operator looks."""
        said = self.hand_over(booking.pk)
        if said == "right":
            client.confirm(booking.reference, booking.hold)
        _forget(booking, Secret.Kind.CODE)  # Not before: if that answer is lost, the code is handed on once more.
        if said == "right":
            return Then("confirm.ok")
        return self._asked_again(said, S.CONFIRM_OTP_SUBMITTING, S.CONFIRMING)

    @task(on(S.VERIFYING), atomic=False)
    def verify(self, booking: models.Booking) -> Then:
        """Ask the portal what is booked: it alone knows whether a lost answer was a yes."""
        booked = client.appointment(booking.reference)
        if not booked:
            return Then("booking.absent")
        _change(booking, slot=booked)
        return Then("booking.verified", slot=booked)

    @step(atomic=False)
    def hand_over(self, booking_id: int) -> str:
        """Give the portal the code: ``right``, ``wrong`` or, as we have none, ``missing``. What is recorded is no secret."""
        booking = models.Booking.objects.get(pk=booking_id)
        if not (code := _secret(booking, Secret.Kind.CODE)):
            return "missing"  # It was used, and an operator has sent us back here: the applicant is asked for another.
        return "right" if client.submit_code(booking.reference, code)["right"] else "wrong"

    @step(atomic=False)
    def send_page(self, page: str, booking_id: int) -> str:
        """Send one page of the form: gives what it needs then, ``documents``, ``fee`` or nothing."""
        booking = models.Booking.objects.get(pk=booking_id)
        form = {"page": page, "name": booking.name, "documents": booking.has_documents, "paid": booking.has_paid}
        needs: str = client.send_form(booking.hold, form)["needs"]
        return needs

    def _asked_again(self, said: str, submitting: str, since: str) -> Then:
        too_often = said == "wrong" and self.visits(submitting, since=since) >= MOST_CODES
        return Then("portal.unknown" if too_often else "otp.wrong")


class Clearing(Timeline):
    """When a booking has ended: secrets go, and what the portal has reserved for nothing is given back."""

    entity = "portal.Booking"
    starts_on = after_run(Booking, ended="exit")

    @task(after(), atomic=False, retry=Retry(max_attempts=10))
    def clear(self, booking: models.Booking) -> None:
        """Forget the password, and give back what others wait for: also what was booked while its applicant gave up."""
        Secret.objects.filter(booking=booking).delete()
        if booking.state != S.BOOKED:
            client.give_back(booking.reference)


def _change(booking: models.Booking, **values: object) -> None:
    """Write what was found, and nothing else: the state is not ours to save."""
    models.Booking.objects.filter(pk=booking.pk).update(**values)


def _secret(booking: models.Booking, kind: Secret.Kind) -> str:
    """Give a secret; empty, where there is none."""
    return Secret.objects.filter(booking=booking, kind=kind).values_list("value", flat=True).first() or ""


def _forget(booking: models.Booking, kind: Secret.Kind) -> None:
    Secret.objects.filter(booking=booking, kind=kind).delete()
