"""The site's pages: who may see what, and what each form does."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.db import router
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format
from icalendar import Calendar

from project.accounts.links import script_token, timeline_token
from project.accounts.models import User
from project.accounts.timelines import Trial
from project.demo.operators import make_operator
from tests.test_views import OnlyDefault
from timeline.models import Event, ScheduledTask
from timeline.shortcuts import cancel, hold, leave, move, release
from timeline.store.site import sign_of_poller
from timeline.testing import expect


@pytest.fixture
def home(client, clock):
    """Path of the timeline of someone who has just signed up through the form."""
    return client.post("/", {"email": "Ada@Example.com", "website": "ada.example.com"}).headers["Location"]


@pytest.fixture
def account(home):
    """Whose it is."""
    return User.objects.get()


class TestSignUp:
    def test_shows_the_form(self, client, db):
        page = client.get("/")

        assert page.status_code == 200
        assert b"Start the trial" in page.content

    def test_opens_an_account_with_a_future(self, account, home, client):
        assert (account.email, account.website) == ("ada@example.com", "ada.example.com")
        assert account.trial_ends_at - account.signed_up_at == timedelta(days=30)
        expect(account).open("remind", "expire")
        assert client.get(home).status_code == 200
        assert not account.has_usable_password()

    def test_mails_the_link(self, home, account):
        [message] = mail.outbox

        assert message.to == ["ada@example.com"]
        assert home in message.body

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            ({"email": "", "website": "a.example"}, "This field is required"),
            ({"email": "no address", "website": "a.example"}, "Enter a valid email address"),
            ({"email": "a@example.com", "website": "no site"}, "Enter a valid URL"),
        ],
    )
    def test_says_what_is_wrong_and_opens_nothing(self, client, db, data, said):
        page = client.post("/", data)

        assert page.status_code == 400
        assert said in page.content.decode()
        assert not User.objects.exists()
        assert not Event.objects.exists()

    def test_shows_the_link_of_an_existing_account_to_nobody_but_its_owner(self, home, account):
        mail.outbox.clear()

        page = Client().post("/", {"email": "ada@example.com", "website": "other.example"})

        assert page.status_code == 400
        assert home not in page.content.decode()
        assert [message.to for message in mail.outbox] == [["ada@example.com"]]
        assert User.objects.count() == 1

    def test_opens_the_account_though_the_mail_server_is_down(self, client, db, monkeypatch):
        monkeypatch.setattr("project.accounts.mails.send_mail", self.refuse)

        opened = client.post("/", {"email": "ada@example.com", "website": "ada.example"})
        again = client.post("/", {"email": "ada@example.com", "website": "ada.example"})

        assert opened.status_code == 302
        assert "Its link could not be mailed" in again.content.decode()

    def refuse(self, *_args):
        raise ConnectionRefusedError

    def test_refuses_a_form_that_is_not_its_own(self, db):
        page = Client(enforce_csrf_checks=True).post("/", {"email": "a@example.com", "website": "a.example"})

        assert page.status_code == 403
        assert not User.objects.exists()


class TestLanguage:
    def test_is_switched_in_the_admin(self, client, db):
        make_operator(now=timezone.now())
        client.force_login(User.objects.get())
        page = client.get("/admin/").content.decode()
        assert '<button name="language" value="de" lang="de">Deutsch</button>' in page

        answer = client.post("/language/", {"language": "de", "next": "/admin/"})

        assert answer["Location"] == "/admin/"
        assert "Anstehende Ereignisse" in client.get("/admin/").content.decode()


class TestNotThere:
    @pytest.mark.parametrize("path", ["/nothing/", "/my/1:forged/"])
    def test_says_so_as_the_site(self, client, db, path):
        page = client.get(path)

        assert page.status_code == 404
        assert "There is no such page" in page.content.decode()


class TestMyTimeline:
    def test_shows_what_is_upcoming_foreseen_and_past(self, home, client, clock):
        clock.advance(days=26)

        page = client.get(home).content.decode()

        assert "We remind you that the trial ends soon" in page
        assert page.index("foreseen") < page.index("scheduled") < page.index("Now") < page.index("completed")

    def test_shows_why_something_is_not_to_be(self, home, client, clock):
        client.post(f"{home}pay/")

        page = client.get(home).content.decode()

        assert page.count("Not needed: payment is configured.") == 2
        assert "Configure payment" not in page

    def test_says_nothing_of_the_mails_that_their_tasks_keep(self, home, client, account, clock):
        """They are for staff who may read results; the customer has the mail itself."""
        clock.advance(days=26)

        kept = ScheduledTask.objects.get(task_key="trial.remind").result
        assert (kept["to"], kept["subject"]) == ("ada@example.com", "Your trial ends soon")
        assert "Configure payment to go on" in kept["text"]
        page = client.get(home).content.decode()
        assert "Your trial ends soon" not in page
        assert "does not call" not in page

    def test_says_until_when_what_is_on_hold_waits_and_not_who_decided_that(self, home, client, account, clock):
        clock.advance(days=24)
        hold(account, until=clock.now + timedelta(days=8), reason="a liar, says his bank", actor="boss@example.com")

        page = client.get(home).content.decode()

        assert page.count(f"It waits until {date_format(clock.now + timedelta(days=8), 'j F, H:i')} UTC.") == 3
        assert page.count("on hold") == 3
        assert "liar" not in page
        assert "boss" not in page

    def test_says_of_a_hold_without_end_that_support_ends_it(self, home, client, account, clock):
        held = hold(account, reason="asked for")

        assert client.get(home).content.decode().count("It waits until our support lets it go on.") == 4

        release(held)
        assert "It waits" not in client.get(home).content.decode()

    def test_says_of_what_a_hold_will_cancel_that_it_will_not_be_done(self, home, client, account, clock):
        hold(account, until=clock.now + timedelta(days=100), then="expire", reason="asked for")

        assert "It waits, and will not be done." in client.get(home).content.decode()

    def test_asks_as_often_with_a_hold_as_without(self, home, client, account, django_assert_num_queries):
        client.get(home)
        for held in (False, True):
            if held:
                hold(account, reason="asked for")
            with django_assert_num_queries(5):
                client.get(home)

    def test_shows_nobodys_words_and_no_error(self, home, client, account):
        said = {"reason": "a liar, says his bank", "actor": "boss@example.com"}
        cancel(ScheduledTask.objects.get(task_key="trial.remind"), **said)
        leave("trial", account, **said)
        ScheduledTask.objects.create(
            task_key="trial.remind",
            entity_label="accounts.user",
            entity_id=str(account.pk),
            state="retryable",
            reason_code="error",
            reason="OSError: no route to 10.0.0.7",
            nominal_at=account.signed_up_at,
            scheduled_at=account.signed_up_at,
            created_at=account.signed_up_at,
            max_attempts=5,
        )

        page = client.get(home).content.decode()

        assert not [words for words in (*said.values(), "10.0.0.7") if words in page]
        assert "Not needed any more." in page
        assert "Called off by our support." in page
        assert "It did not work; we try again." in page

    def test_has_what_followed_above_what_it_followed_also_at_the_same_moment(self, home, client, clock):
        clock.advance(days=31)

        page = client.get(home).content.decode()

        assert page.index("We tell you that the trial has ended") < page.index("The trial ends;")

    def test_shows_who_moved_something(self, home, client, account):
        """A person, or the trial's end: not the same to a customer."""
        [end] = ScheduledTask.objects.filter(task_key="trial.expire")
        move([end], at=end.scheduled_at + timedelta(days=2), reason="asked by phone", actor="eva")

        assert "Moved by our support." in client.get(home).content.decode()

        account.trial_ends_at += timedelta(days=9)
        account.save()
        page = client.get(home).content.decode()
        assert "Moved, because the trial&#x27;s end moved." in page
        assert "Moved by our support." not in page

    def test_gives_the_part_that_changes_alone(self, home, client):
        part = client.get(home, {"part": ""}).content.decode()

        assert "<html" not in part
        assert "We remind you" in part

    @pytest.mark.parametrize("token", ["1", "1:x", "", "2:abc", "../1"])
    def test_opens_for_no_link_but_a_signed_one(self, client, account, token):
        assert client.get(f"/my/{token}/").status_code == 404

    def test_does_not_open_with_the_token_of_the_script(self, client, account):
        assert client.get(f"/my/{script_token(account)}/").status_code == 404

    def test_shows_nothing_of_others(self, home, client, clock):
        client.post("/", {"email": "ben@example.com", "website": "ben.example.com"})

        page = client.get(home).content.decode()

        assert "ben" not in page

    def test_changes_nothing_on_get(self, home, client, account):
        for action in ("pay", "extend", "close"):
            assert client.get(f"{home}{action}/").status_code == 405

        account.refresh_from_db()
        assert (account.payment_configured_at, account.trial_closed_at) == (None, None)

    def test_escapes_what_people_type(self, client, clock):
        user = User.objects.create(
            email="x@example.com", website="<b>x</b>", signed_up_at=clock.now, trial_ends_at=clock.now
        )

        page = client.get(f"/my/{timeline_token(user)}/").content.decode()

        assert "<b>x" not in page
        assert "&lt;b&gt;x" in page


class TestCalendar:
    @pytest.fixture
    def address(self, home, client):
        """Of the calendar, as the customer's page says it."""
        page = client.get(home).content.decode()
        return re.search(r"http://testserver(/calendar/[^<]+\.ics)", page)[1]

    def read(self, address):
        events = Calendar.from_ical(Client().get(address).content).walk("VEVENT")
        return {str(event["summary"]): event["dtstart"].dt for event in events}

    def test_follows_what_is_ahead_of_a_customer(self, address, account, home, client):
        before = self.read(address)

        client.post(f"{home}extend/")
        after = self.read(address)

        assert set(before) == {"We remind you that the trial ends soon", "The trial ends; the chat is switched off"}
        assert {title: at - before[title] for title, at in after.items()} == dict.fromkeys(before, timedelta(days=14))

    def test_is_empty_once_they_pay(self, address, home, client):
        client.post(f"{home}pay/")

        assert self.read(address) == {}

    def test_shows_nothing_of_another_customer(self, address, account, client):
        client.post("/", {"email": "ben@example.com", "website": "ben.example"})
        at = ScheduledTask.objects.for_entity(account).get(task_key="trial.remind").scheduled_at

        assert len(self.read(address)) == 2
        assert self.read(address)["We remind you that the trial ends soon"] == at.replace(microsecond=0)

    def test_is_gone_with_the_account(self, address, account, home, client):
        client.post(f"{home}close/")

        assert client.get(address).status_code == 404
        assert "In your calendar" not in client.get(home).content.decode()


class TestActions:
    def test_pay_activates_and_ends_the_trial(self, home, client, account, clock):
        clock.advance(days=31)
        client.post(f"{home}pay/")

        account.refresh_from_db()
        assert account.is_active
        expect(account).open().cancelled("check_script_usage", reason="paid")

    def test_extend_moves_the_date(self, home, client, account):
        before = account.trial_ends_at

        client.post(f"{home}extend/")

        account.refresh_from_db()
        assert account.trial_ends_at - before == timedelta(days=14)
        expect(account).scheduled("expire", at=account.trial_ends_at)

    @pytest.mark.parametrize("action", ["pay", "extend", "close"])
    def test_do_nothing_once_the_trial_was_closed(self, home, client, account, action):
        client.post(f"{home}close/")
        events = Event.objects.count()

        client.post(f"{home}{action}/")

        assert Event.objects.count() == events
        expect(account).open()


class TestScriptCall:
    def test_is_noted(self, client, account, clock):
        answer = Client(enforce_csrf_checks=True).post(f"/script/{script_token(account)}/")

        account.refresh_from_db()
        assert answer.status_code == 204
        assert account.script_seen_at == clock.now

    def test_of_a_stranger_is_refused(self, client, account):
        assert client.post("/script/1:wrong/").status_code == 404
        assert client.post(f"/script/{timeline_token(account)}/").status_code == 404

    def test_must_be_a_post(self, client, account):
        assert client.get(f"/script/{script_token(account)}/").status_code == 405


class TestHandlersOnTheirOwn:
    def test_can_be_called_in_a_unit_test(self, db):
        now = timezone.now()
        user = User.objects.create(email="a@example.com", website="a", signed_up_at=now, trial_ends_at=now)

        result = Trial().check_script_usage(user)

        assert result == {"in_use": False}
        assert not ScheduledTask.objects.exists()


class TestHealth:
    def test_answers_probes_without_a_login(self, db, client, monkeypatch):
        monkeypatch.setattr(router, "routers", [OnlyDefault()])
        assert client.get("/health/").status_code == 503

        sign_of_poller(using="default")

        answer = client.get("/health/")
        assert (answer.status_code, answer.json()) == (200, {"status": "well"})
