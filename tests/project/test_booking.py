"""A booking at the portal of the demo: each way through its machine, with the portal as a server."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from project.demo.faults import Faults
from project.demo.office import FRIENDLY
from project.portal import services
from project.portal.models import Booking, Secret
from project.portal.states import S
from tests.booking import MORNING, state_of, wanted, way_of
from timeline import TransitionNotAllowed
from timeline.models import Event, ScheduledTask

OLD = "old one"  # By which the portal knows that a password is not theirs any more.


def hostile(portal, **ways):
    """Let the portal be so from now on."""
    portal.office.ways = replace(FRIENDLY, **ways)


def failing(portal, service, *fates):
    """Let the next calls of a service have these fates, and all others none."""
    to_come = list(fates)
    portal.faults = Faults()
    portal.faults.of = lambda asked: to_come.pop(0) if asked == service and to_come else ""


class TestABooking:
    def test_is_booked_where_nothing_is_in_its_way_and_its_secrets_go(self, bookings, portal):
        booking = wanted(bookings)

        bookings.advance(seconds=0)

        booking.refresh_from_db()
        assert way_of(booking)[-3:] == [S.CONFIRMING, S.VERIFYING, S.BOOKED]
        assert len(way_of(booking)) == 12
        assert booking.slot == portal.office.told()["booked"][booking.reference]
        assert booking.state == S.BOOKED
        assert not Secret.objects.exists()

    def test_that_makes_no_sense_fails_before_the_portal_hears_of_it(self, bookings, portal):
        booking = wanted(bookings, latest_hour=8)

        bookings.advance(seconds=0)

        assert way_of(booking) == [S.CREATED, S.VALIDATING, S.FAILED]

    def test_waits_for_the_morning_where_the_portal_is_closed_by_night(self, bookings, portal):
        bookings.set(MORNING.replace(hour=23))
        booking = wanted(bookings, search_until=MORNING + timedelta(days=2))

        bookings.advance(hours=6)
        assert state_of(booking) == S.AWAITING_RELEASE
        bookings.advance(hours=1)

        assert state_of(booking) == S.BOOKED

    def test_has_its_code_asked_for_and_no_row_of_a_timeline_has_it(self, bookings, portal):
        hostile(portal, code=1, confirm_code=1)
        booking = wanted(bookings)
        bookings.advance(seconds=0)
        assert state_of(booking) == S.AUTH_OTP_REQUIRED

        codes = []
        for rest in (S.AUTH_OTP_REQUIRED, S.CONFIRM_OTP_REQUIRED):
            assert state_of(booking) == rest
            codes.append(portal.office.code_of(booking.reference))
            services.give_code(booking, codes[-1])
            bookings.advance(seconds=0)

        assert state_of(booking) == S.BOOKED
        assert codes[0] != codes[1]
        kept = [
            *Event.objects.values_list("payload", flat=True),
            *ScheduledTask.objects.values_list("payload", "result"),
        ]
        assert not [code for code in codes if code in str(kept)]

    def test_goes_to_an_operator_after_three_wrong_codes_and_back_from_there(self, bookings, portal):
        hostile(portal, code=1)
        booking = wanted(bookings)
        bookings.advance(seconds=0)
        for _ in range(3):
            services.give_code(booking, "wrong")
            bookings.advance(seconds=0)
        assert state_of(booking) == S.OPERATOR_ESCALATED

        services.resolve(booking, actor="olga", state=S.OPERATOR_ESCALATED)
        bookings.advance(seconds=0)
        assert state_of(booking) == S.AUTH_OTP_REQUIRED  # The code that was wrong is not tried again.
        services.give_code(booking, portal.office.code_of(booking.reference))
        bookings.advance(seconds=0)

        assert state_of(booking) == S.BOOKED

    def test_rests_at_a_captcha_until_somebody_was_there(self, bookings, portal):
        hostile(portal, captcha=1)
        booking = wanted(bookings)
        bookings.advance(seconds=0)
        assert state_of(booking) == S.AUTH_CAPTCHA_REQUIRED

        portal.office.see_human(booking.reference)
        services.resolve(booking, actor="olga", state=S.AUTH_CAPTCHA_REQUIRED)
        bookings.advance(seconds=0)

        assert state_of(booking) == S.BOOKED

    @pytest.mark.parametrize(("waits", "end"), [(timedelta(hours=47), S.BOOKED), (timedelta(hours=48), S.EXPIRED)])
    def test_waits_two_days_for_another_password(self, bookings, portal, waits, end):
        booking = wanted(bookings, password=OLD, search_until=MORNING + timedelta(days=9))
        bookings.advance(waits)

        if end == S.BOOKED:
            services.give_password(booking, "new one")
            bookings.advance(seconds=0)

        assert state_of(booking) == end
        assert not Secret.objects.exists()

    def test_is_booked_once_though_the_answer_was_lost(self, bookings, portal):
        """The portal has booked, we heard nothing: asked again it says that the reservation is gone. The booking is found."""
        failing(portal, "confirm", "lost")
        booking = wanted(bookings)

        bookings.advance(minutes=5)

        assert way_of(booking)[-5:] == [S.CONFIRMING, S.RETRY_SCHEDULED, S.CONFIRMING, S.VERIFYING, S.BOOKED]
        told = portal.office.told()
        assert (list(told["booked"]), told["booked_twice"], told["lost"]) == ([booking.reference], 0, 1)

    def test_looks_for_another_where_somebody_was_quicker(self, bookings, portal):
        hostile(portal, gone=0.7)
        booking = wanted(bookings)

        bookings.advance(seconds=0)

        assert way_of(booking).count(S.HOLDING_SLOT) == way_of(booking).count(S.SEARCHING) > 1
        assert state_of(booking) == S.BOOKED

    def test_looks_every_five_minutes_until_it_is_of_no_use(self, bookings, portal):
        hostile(portal, full=1)
        booking = wanted(bookings, search_until=MORNING + timedelta(minutes=32))

        bookings.advance(hours=1)

        assert state_of(booking) == S.EXPIRED
        assert way_of(booking).count(S.NO_SLOT) == 7

    def test_asks_where_only_late_ones_are_free(self, bookings, portal):
        hostile(portal, late=1)
        booking = wanted(bookings, latest_hour=12)
        bookings.advance(seconds=0)
        assert state_of(booking) == S.CHOICE_REQUIRED

        booking.refresh_from_db()
        with pytest.raises(ValueError, match="nonsense"):
            services.choose(booking, "nonsense")
        services.choose(booking, booking.offers[1])
        bookings.advance(seconds=0)

        assert portal.office.told()["booked"][booking.reference] == booking.offers[1]

    def test_fills_in_what_the_form_asks_for_besides(self, bookings, portal):
        hostile(portal, documents=1, fee=1)
        booking = wanted(bookings)
        bookings.advance(seconds=0)
        assert state_of(booking) == S.DOCUMENTS_REQUIRED
        services.give_documents(booking)
        bookings.advance(seconds=0)
        assert state_of(booking) == S.PAYMENT_REQUIRED

        services.pay(booking)
        bookings.advance(seconds=0)

        assert state_of(booking) == S.BOOKED

    def test_that_nobody_pays_for_is_looked_for_anew_when_the_reservation_is_over(self, bookings, portal):
        hostile(portal, fee=1)
        booking = wanted(bookings)

        bookings.advance(minutes=21)

        assert way_of(booking).count(S.SEARCHING) == 2
        assert state_of(booking) == S.PAYMENT_REQUIRED

    def test_of_a_portal_that_is_down_is_tried_again_and_then_somebody_looks(self, bookings, portal):
        failing(portal, "login", *["refused"] * 6)
        booking = wanted(bookings)

        bookings.advance(hours=1)

        assert state_of(booking) == S.OPERATOR_ESCALATED
        assert way_of(booking).count(S.RETRY_SCHEDULED) == 6

    def test_given_up_after_the_portal_has_booked_is_given_back(self, bookings, portal):
        failing(portal, "confirm", "lost")
        booking = wanted(bookings)
        bookings.advance(seconds=0)
        assert (state_of(booking), len(portal.office.told()["booked"])) == (S.RETRY_SCHEDULED, 1)

        services.cancel(booking)
        bookings.advance(seconds=0)

        assert state_of(booking) == S.CANCELLED
        assert portal.office.told()["booked"] == {}

    def test_answered_as_nobody_knows_goes_to_an_operator_who_may_give_up(self, bookings, portal):
        hostile(portal, strange=1)
        booking = wanted(bookings)
        bookings.advance(seconds=0)
        assert state_of(booking) == S.OPERATOR_ESCALATED

        with pytest.raises(TransitionNotAllowed):
            services.give_up(booking, actor="olga", state=S.AUTH_CAPTCHA_REQUIRED)
        services.give_up(booking, actor="olga", state=S.OPERATOR_ESCALATED)

        assert Booking.objects.get().state == S.FAILED
