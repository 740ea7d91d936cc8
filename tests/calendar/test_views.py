"""The calendar of one person, by an address that only they know."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from icalendar import Calendar

from project.accounts.models import User
from timeline.calendar import views
from timeline.calendar.tokens import calendar_token
from timeline.ids import uuid7
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.policy import TimelinePolicy
from timeline.shortcuts import cancel, hold, move, release
from timeline.testing import StoryClock

pytestmark = pytest.mark.urls("tests.calendar.addresses")


class Strict(TimelinePolicy):
    """Shows nobody what is about themselves."""

    def visible(self, tasks, user):
        return super().visible(tasks, user).exclude(task_key="account.tell_news")


def ask(token, name="their-calendar"):
    return Client().get(reverse(name, args=[token]))


def events_of(user, name="their-calendar"):
    """What a calendar program shows of a person's calendar."""
    answer = ask(calendar_token(user), name)
    assert answer.status_code == 200
    return Calendar.from_ical(answer.content).walk("VEVENT")


def shown(user):
    return {str(event["uid"]) for event in events_of(user)}


class TestCalendarView:
    def test_shows_what_is_ahead_of_a_person_and_nothing_of_others(self, person, ahead, seat):
        ada, ben = person("ada"), person("ben")
        own, of_seat = ahead("account.tell_news", ada), ahead("seating.free", seat(ada))
        ahead("account.tell_news", ben)
        ahead("seating.free", seat(ben))
        ahead("accounting.bill", seat(ada))
        ahead("account.tell_news", None)

        assert shown(ada) == {str(own.pk), str(of_seat.pk)}

    def test_shows_staff_their_own_only(self, person, ahead):
        eva = person("eva", "view_scheduledtask")
        own = ahead("account.tell_news", eva)
        ahead("account.tell_news", person("ada"))

        assert shown(eva) == {str(own.pk)}

    def test_asks_the_policy(self, person, ahead, seat, settings):
        settings.TIMELINE = {**settings.TIMELINE, "POLICY": "tests.calendar.test_views.Strict"}
        ada = person("ada")
        ahead("account.tell_news", ada)
        of_seat = ahead("seating.free", seat(ada))

        assert shown(ada) == {str(of_seat.pk)}

    def test_leaves_out_what_is_past_under_way_or_in_shadow(self, person, ahead):
        ada = person("ada")
        retried = ahead("account.tell_news", ada, state=State.RETRYABLE)
        ahead("account.tell_news", ada, hours=0)
        ahead("account.tell_news", ada, hours=-1)
        ahead("account.tell_news", ada, state=State.ACTIVE)
        ahead("account.tell_news", ada, state=State.CANCELLED)
        ahead("trying.call", ada)

        assert shown(ada) == {str(retried.pk)}

    def test_follows_a_task_that_is_moved_and_cancelled(self, person, ahead, now):
        ada = person("ada")
        task = ahead("account.tell_news", ada, hours=1)
        [before] = events_of(ada)

        later = now + timedelta(days=5)
        move(task, at=later, reason="asked for")
        [after] = events_of(ada)

        assert (after["uid"], after["dtstart"].dt) == (before["uid"], later)
        assert after["sequence"] > before["sequence"]
        cancel(task, reason="asked for")
        assert str(before["uid"]) not in shown(ada)

    def test_has_what_is_on_hold_where_it_comes_then_and_says_so(self, person, ahead, now):
        ada = person("ada")
        ahead("account.tell_news", ada, hours=1)
        monday = now + timedelta(days=4)
        held = hold(ada, until=monday, reason="quiet", actor="eva")

        [event] = events_of(ada)

        assert (event["dtstart"].dt, str(event["summary"])) == (monday, "Account: tell news")
        assert str(event["description"]).startswith("It waits until ")
        assert "quiet" not in ask(calendar_token(ada)).content.decode()
        release(held)
        assert events_of(ada)[0]["dtstart"].dt == now + timedelta(hours=1)

    def test_says_of_a_hold_without_end_that_it_may_not_come(self, person, ahead, now):
        ada = person("ada")
        ahead("account.tell_news", ada, hours=1)
        hold(ada, reason="quiet")

        [event] = events_of(ada)

        assert event["dtstart"].dt == now + timedelta(hours=1)
        assert str(event["summary"]) == "Account: tell news (on hold)"
        assert str(event["description"]) == "It waits until it is released."

    def test_moves_what_a_hold_will_shift_and_leaves_out_what_it_will_cancel(self, person, ahead, now):
        ada, ben = person("ada"), person("ben")
        for each in (ada, ben):
            ahead("account.tell_news", each, hours=1, created_at=now)
        hold(ada, until=now + timedelta(hours=5), then="shift", reason="quiet")
        hold(ben, until=now + timedelta(hours=5), then="expire", reason="quiet")

        assert [event["dtstart"].dt for event in events_of(ada)] == [now + timedelta(hours=6)]
        assert events_of(ben) == []

    def test_says_what_it_is_and_nothing_of_payload_or_people(self, person, ahead, seat):
        ada = person("ada")
        theirs = seat(ada)
        ahead("account.tell_news", ada, hours=1, payload={"note": "quiet"}, actor="eva", reason="hushed")
        ahead("seating.free", theirs, hours=2)

        text = ask(calendar_token(ada)).content.decode().replace("\r\n ", "")

        first, second = Calendar.from_ical(text).walk("VEVENT")
        assert (str(first["summary"]), first.get("description")) == ("Account: tell news", None)
        assert (str(second["summary"]), str(second["description"])) == ("Seating: free", f"seat {theirs.pk}")
        assert not any(word in text for word in ("quiet", "eva", "hushed", "ada@example.com"))

    def test_takes_the_titles_of_the_host_and_leaves_out_what_has_none(self, person, ahead, seat):
        ada = person("ada")
        ahead("account.tell_news", ada)
        ahead("seating.free", seat(ada))

        assert [str(event["summary"]) for event in events_of(ada, "spoken-calendar")] == ["Your seat is free again"]

    def test_says_which_of_many_a_task_is_that_was_fanned_out(self):
        task = ScheduledTask(task_key="night_run.pay_one", occurrence="7", run_id=uuid7())

        assert views.CalendarView().title(task) == "Night run: pay one #7"

    @pytest.mark.django_db(databases=["default", "other"])
    def test_shows_the_tasks_of_the_database_that_it_is_given(self, person, ahead, rf, now):
        ada = person("ada")
        ahead("account.tell_news", ada)
        there = ahead("account.tell_news", ada, hours=2)
        there.delete()
        there.save(using="other", force_insert=True)

        with StoryClock(now, using="other"):
            answer = views.CalendarView.as_view(using="other")(rf.get("/"), token=calendar_token(ada))

        assert [str(event["uid"]) for event in Calendar.from_ical(answer.content).walk("VEVENT")] == [str(there.pk)]

    def test_shows_the_soonest_of_many(self, person, ahead, monkeypatch):
        monkeypatch.setattr(views, "MOST", 2)
        ada = person("ada")
        rows = [ahead("account.tell_news", ada, hours) for hours in (3, 1, 2)]

        assert [str(event["uid"]) for event in events_of(ada)] == [str(rows[1].pk), str(rows[2].pk)]

    def test_asks_the_database_as_often_for_many_as_for_one(self, person, ahead, seat):
        ada = person("ada")
        ahead("account.tell_news", ada)
        ahead("seating.free", seat(ada))
        with CaptureQueriesContext(connection) as few:
            shown(ada)
        for hours in range(2, 22):
            ahead("account.tell_news", ada, hours)
            ahead("seating.free", seat(ada), hours)

        with CaptureQueriesContext(connection) as many:
            assert len(shown(ada)) == 42

        assert len(many) == len(few) <= 4

    def test_is_kept_by_no_cache_and_found_by_no_search(self, person):
        answer = ask(calendar_token(person("ada")))

        assert answer.headers["Content-Type"] == "text/calendar; charset=utf-8"
        assert "no-store" in answer.headers["Cache-Control"]
        assert answer.headers["X-Robots-Tag"] == "noindex"

    def test_is_read_and_not_written(self, person):
        address = reverse("their-calendar", args=[calendar_token(person("ada"))])

        assert Client().head(address).status_code == 200
        assert Client().post(address).status_code == 405

    def test_answers_alike_what_was_revoked_and_what_was_never_there(self, person):
        """Else an address that leaked would tell whose it was."""
        revoked, away, gone = person("ada"), person("ben"), person("cleo")
        tokens = [calendar_token(each) for each in (revoked, away, gone)]
        revoked.set_unusable_password()
        revoked.save()
        User.objects.filter(pk=away.pk).update(is_active=False)
        gone.delete()

        answers = [ask(token) for token in (*tokens, "MQ.made-up", "%00", "x")]

        assert {answer.status_code for answer in answers} == {404}
        assert len({answer.content for answer in answers}) == 1

    def test_does_not_ask_who_is_logged_in(self, person, ahead):
        """A calendar program is not; and a link shows its person's calendar whoever follows it."""
        ada, ben = person("ada"), person("ben")
        own = ahead("account.tell_news", ada)
        client = Client()
        client.force_login(ben)

        answer = client.get(reverse("their-calendar", args=[calendar_token(ada)]))

        assert [str(event["uid"]) for event in Calendar.from_ical(answer.content).walk("VEVENT")] == [str(own.pk)]
