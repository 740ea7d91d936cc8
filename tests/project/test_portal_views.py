"""The pages of bookings: who may see what, what each form does, and what is written where it may not be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from project.accounts.models import User
from project.demo.office import FRIENDLY
from project.portal.links import booking_token
from project.portal.models import Booking, Secret
from project.portal.presenting import WORDS, slot_in_words
from project.portal.states import S
from tests.booking import state_of, wanted
from tests.machines import no_write
from timeline.models import Event
from timeline.shortcuts import hold, release
from timeline.testing import only_timelines


@pytest.fixture
def asked(bookings, portal):
    """A booking for which the portal asks for a code."""
    portal.office.ways = replace(FRIENDLY, code=1)
    booking = wanted(bookings)
    bookings.advance(seconds=0)
    return booking


@pytest.fixture
def home(asked):
    """The page of its applicant."""
    return f"/appointments/{booking_token(asked)}/"


@pytest.fixture
def stuck(bookings, portal):
    """A booking that an operator has to look at."""
    portal.office.ways = replace(FRIENDLY, strange=1)
    booking = wanted(bookings)
    bookings.advance(seconds=0)
    portal.office.ways = FRIENDLY
    return booking


@pytest.fixture
def operator(db, now):
    """Who has the right."""
    user = User.objects.create(email="olga@example.com", is_staff=True, signed_up_at=now, trial_ends_at=now)
    user.user_permissions.add(Permission.objects.get(codename="resolve_booking"))
    return user


DESK = "/appointments/desk/"


class TestWay:
    def test_names_a_state_once_that_follows_itself(self, client, stuck, bookings):
        """Operators are reminded by a timer that leads back to the same state."""
        bookings.advance(hours=13)

        page = client.get(f"/appointments/{booking_token(stuck)}/").content.decode()

        assert page.count(f'<p class="title">{WORDS[S.OPERATOR_ESCALATED]}</p>') == 1

    def test_tells_an_appointment_with_its_zone(self):
        assert slot_in_words("2026-03-02T20:40:00+01:00") == "March 2, 2026, 7:40 p.m. UTC"


class TestApply:
    def test_takes_in_an_application_and_shows_how_it_stands(self, client, bookings, portal):
        given = {"name": "Ada", "email": "ada@example.com", "password": "horse", "latest_hour": "24"}

        answer = client.post("/appointments/", given)
        bookings.advance(seconds=0)

        assert answer.status_code == 302
        page = client.get(answer["Location"])
        assert "It is booked" in page.content.decode()
        assert page["Referrer-Policy"] == "same-origin"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"name": ""},
            {"name": "A\0da"},
            {"email": "x"},
            {"email": f"{'a' * 60}@{'b' * 60}.{'c' * 60}.de"},
            {"password": "x" * 101},
            {"latest_hour": "99"},
        ],
    )
    def test_says_what_is_wrong_and_begins_nothing(self, client, bookings, wrong):
        given = {"name": "Ada", "email": "ada@example.com", "password": "horse", "latest_hour": "24"}

        assert client.post("/appointments/", given | wrong).status_code == 400
        assert not Booking.objects.exists()

    def test_speaks_german(self, client, bookings):
        page = client.get("/appointments/", headers={"accept-language": "de"}).content.decode()

        assert '<html lang="de">' in page
        assert "Wir holen Ihnen den Termin." in page


class TestABookingsPage:
    def test_has_words_for_each_state(self):
        assert set(WORDS) == set(S)

    def test_says_where_it_is_and_asks_for_the_code(self, client, asked, home):
        page = client.get(home).content.decode()

        assert "The portal has sent you a code" in page
        assert "We sign in for you" in page
        assert 'name="code"' in page
        assert f"/inbox/{asked.reference}" in page

    def test_takes_the_code_and_has_no_event_with_it(self, client, bookings, portal, asked, home):
        code = portal.office.code_of(asked.reference)

        assert client.post(f"{home}code/", {"code": code}).status_code == 302

        assert Event.objects.get(name="otp.given").payload == {"code_ref": Secret.objects.get(kind="code").pk}
        bookings.advance(seconds=0)
        assert state_of(asked) == S.BOOKED

    @pytest.mark.parametrize("code", ["", "12", "abcdef", "1" * 11, "<b>1234</b>", "١٢٣٤٥٦"])
    def test_refuses_what_is_no_code(self, client, asked, home, code):
        with no_write():
            page = client.post(f"{home}code/", {"code": code})

        assert page.status_code == 400
        assert "<b>" not in page.content.decode()

    def test_says_that_it_has_moved_on_where_it_takes_that_no_more(self, client, asked, home):
        for what, given in (("payment", {}), ("documents", {}), ("password", {"password": "x"})):
            page = client.post(f"{home}{what}/", given)
            assert page.status_code == 409
            assert "has moved on meanwhile" in page.content.decode()

        asked.refresh_from_db()
        assert (asked.has_paid, asked.has_documents, state_of(asked)) == (False, False, S.AUTH_OTP_REQUIRED)
        assert Secret.objects.get(kind="password").value != "x"

    def test_refuses_a_choice_that_was_not_offered(self, client, asked, home):
        assert client.post(f"{home}choice/", {"slot": "2026-12-01T10:00"}).status_code == 400

    def test_can_be_given_up(self, client, asked, home):
        client.post(f"{home}cancel/")

        page = client.get(home).content.decode()
        assert "You have given it up" in page
        assert "Give it up" not in page

    @pytest.mark.parametrize("token", ["1", "1:x", "desk:x", "0"])
    def test_opens_for_no_link_but_a_signed_one(self, client, asked, token):
        assert client.get(f"/appointments/{token}/").status_code == 404
        assert client.post(f"/appointments/{token}/cancel/").status_code == 404

    def test_changes_nothing_on_get_nor_without_its_token_of_forms(self, client, asked, home):
        assert client.get(f"{home}cancel/").status_code == 405
        assert Client(enforce_csrf_checks=True).post(f"{home}cancel/").status_code == 403
        assert client.post(f"{home}nothing/").status_code == 404
        assert state_of(asked) == S.AUTH_OTP_REQUIRED

    def test_escapes_what_people_type(self, client, bookings, portal):
        portal.office.ways = replace(FRIENDLY, strange=1)
        booking = wanted(bookings, name="<i>Ada</i>")
        bookings.advance(seconds=0)

        assert "<i>Ada" not in client.get(f"/appointments/{booking_token(booking)}/").content.decode()

    def test_is_asked_for_in_as_many_queries_however_far_it_has_come(
        self, client, asked, home, django_assert_num_queries
    ):
        with django_assert_num_queries(5):
            client.get(home)

    def test_says_until_when_it_waits_and_not_why(self, client, asked, home):
        booking = Booking.objects.get()
        held = hold(booking, reason="a liar", actor="boss")

        page = client.get(home).content.decode()

        assert "It waits until one of our people lets it go on." in page
        assert "it goes on at" not in page
        assert "liar" not in page
        release(held)
        hold(booking, until=timezone.now() + timedelta(days=100), reason="a liar")
        assert "It waits until" in client.get(home).content.decode()
        assert "lets it go on" not in client.get(home).content.decode()


class TestDesk:
    def test_shows_what_waits_and_lets_it_go_on(self, client, bookings, stuck, operator):
        client.force_login(operator)
        page = client.get("/appointments/desk/").content.decode()
        assert stuck.reference in page
        assert "4\xa0hours left" in page

        client.post(f"/appointments/desk/{stuck.pk}/resolve/", {"state": S.OPERATOR_ESCALATED})
        bookings.advance(seconds=0)

        assert state_of(stuck) == S.BOOKED
        assert Event.objects.get(name="operator.resolved").actor == "olga@example.com"

    def test_follows_what_happens_and_tells_nobody_else(self, client, bookings, stuck, operator, portal):
        client.force_login(operator)
        seen = client.get(DESK, headers={"X-Timeline-Seen": ""}).headers["X-Timeline-Version"]
        assert client.get(DESK, headers={"X-Timeline-Seen": seen}).status_code == 204

        portal.office.ways = replace(FRIENDLY, strange=1)
        other = wanted(bookings)
        bookings.advance(seconds=0)

        answer = client.get(DESK, headers={"X-Timeline-Seen": seen})
        assert other.reference in answer.content.decode()
        client.logout()
        assert client.get(DESK, headers={"X-Timeline-Seen": seen}).status_code == 302

    def test_gives_up_only_what_is_still_there(self, client, stuck, operator):
        client.force_login(operator)

        elsewhere = {"state": S.AUTH_CAPTCHA_REQUIRED}
        assert client.post(f"/appointments/desk/{stuck.pk}/give-up/", elsewhere).status_code == 409
        assert (
            client.post(f"/appointments/desk/{stuck.pk}/give-up/", {"state": S.OPERATOR_ESCALATED}).status_code == 302
        )

        assert state_of(stuck) == S.FAILED

    def test_says_so_of_a_booking_that_has_no_run(self, client, bookings, operator):
        client.force_login(operator)
        with only_timelines():
            bare = Booking.objects.create(reference="bare", search_until=bookings.now, created_at=bookings.now)

        for pk, status in ((bare.pk, 409), (10**40, 404)):
            answer = client.post(f"/appointments/desk/{pk}/resolve/", {"state": S.OPERATOR_ESCALATED})
            assert answer.status_code == status

    @pytest.mark.parametrize("state", ["", "nonsense", S.BOOKED])
    def test_refuses_a_state_that_there_is_not(self, client, stuck, operator, state):
        client.force_login(operator)

        assert client.post(f"/appointments/desk/{stuck.pk}/resolve/", {"state": state}).status_code == 400
        assert state_of(stuck) == S.OPERATOR_ESCALATED

    @pytest.mark.parametrize("pk", ["stuck", "absent"])
    def test_is_for_nobody_without_the_right_whether_there_is_one_or_not(self, client, stuck, user, pk):
        address = f"/appointments/desk/{stuck.pk if pk == 'stuck' else 0}/resolve/"
        assert client.post(address).status_code == 403
        client.force_login(user)
        assert client.post(address).status_code == 403
        assert client.get("/appointments/desk/").status_code == 302

    def test_takes_as_many_queries_for_many(self, client, bookings, stuck, operator, portal, django_assert_num_queries):
        portal.office.ways = replace(FRIENDLY, strange=1)
        for _ in range(5):
            wanted(bookings)
        bookings.advance(seconds=0)
        client.force_login(operator)

        with django_assert_num_queries(7):
            page = client.get("/appointments/desk/")
        assert page.content.count(b"<li>") >= 6
