"""Actions: count first, ask for a reason, all or nothing, each by its own permission."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.admin.conftest import ACT, ALL, ENTITY, LIST, detail, text_of
from timeline.admin import actions
from timeline.admin.pages import made_for
from timeline.lifecycle import FINAL, OPEN, WAITING, State
from timeline.models import LogEntry, ScheduledTask
from timeline.policy import Action
from timeline.shortcuts import cancel, emit, move, redrive

STATES = {Action.CANCEL: OPEN, Action.MOVE: OPEN, Action.RUN_NOW: WAITING, Action.REDRIVE: FINAL}


def ask(client, action, *rows, **given):
    return client.post(ACT, {"action": action, "task": [row.pk for row in rows], **given})


def act(client, action, *rows, reason="they asked", **given):
    return ask(client, action, *rows, confirmed="1", reason=reason, **given)


def state_of(row):
    return ScheduledTask.objects.get(pk=row.pk).state


class TestAsking:
    def test_counts_what_will_change_and_what_cannot_and_why(self, operator, about, order):
        rows = [about(order), about(order), about(order, state=State.COMPLETED)]

        response = ask(operator, "cancel", *rows)

        text = text_of(response)
        assert "Cancel 2 tasks" in text
        assert "2 tasks will change" in text
        assert "1 task stays as it is" in text
        assert "The task is completed." in text
        assert [state_of(row) for row in rows] == ["scheduled", "scheduled", "completed"]

    def test_counts_those_that_are_gone_like_those_one_may_not_see(self, browse, person, about):
        staff = person("staff", "cancel_scheduledtask")
        own = about(staff, task_key="account.welcome")
        hidden = about(person("ada"), task_key="account.welcome")

        text = text_of(ask(browse(staff), "cancel", own, hidden))

        assert "1 task is not there any more." in text
        assert str(hidden.pk) not in text

    def test_says_that_a_run_ended_by_an_exit(self, operator, order):
        emit("order.placed", order)
        emit("order.returned", order)

        assert "Its run ended: returned." in text_of(ask(operator, "redrive", ScheduledTask.objects.get()))

    def test_changes_nothing_by_get(self, operator, about, order):
        row = about(order)

        response = operator.get(ACT, {"action": "cancel", "task": row.pk, "confirmed": 1, "reason": "x"}, follow=True)

        assert response.redirect_chain == [(LIST, 302)]
        assert "Choose the tasks first." in text_of(response)
        assert state_of(row) == "scheduled"

    def test_needs_the_token_of_the_form(self, person, about, order):
        client, row = Client(enforce_csrf_checks=True), about(order)
        client.force_login(person("operator", *ALL))

        assert act(client, "cancel", row).status_code == 403
        assert state_of(row) == "scheduled"

    def test_asks_to_choose_first(self, operator):
        response = operator.post(ACT, {"action": "cancel", "where": "?timeline=care"}, follow=True)

        assert response.redirect_chain == [(f"{LIST}?timeline=care", 302)]
        assert "Choose the tasks first." in text_of(response)

    @pytest.mark.parametrize("given", [{"action": "erase"}, {"task": "17"}, {"task": "0" * 32}])
    def test_is_not_found_for_what_is_none(self, operator, about, order, given):
        assert operator.post(ACT, {"action": "cancel", "task": about(order).pk, **given}).status_code == 404

    def test_asks_as_often_for_one_as_for_fifty(self, operator, about, order):
        counts = []
        for number in (1, 50):
            rows = [about(order) for _ in range(number)]
            with CaptureQueriesContext(connection) as queries:
                ask(operator, "cancel", *rows)
            counts.append(len(queries))

        assert counts[0] == counts[1] <= 12


class TestActing:
    @pytest.mark.parametrize("action", STATES)
    @pytest.mark.parametrize("state", State)
    def test_does_what_the_state_lets_happen(self, operator, about, order, action, state):
        row = about(order, state=state)

        response = act(operator, action, row, at="2026-04-01T12:00")

        assert response.status_code == (302 if state in STATES[action] else 200)
        assert (LogEntry.objects.exists() or ScheduledTask.objects.count() == 2) == (state in STATES[action])

    @pytest.mark.parametrize("action", STATES)
    def test_is_allowed_by_its_own_permission_alone(self, browse, person, about, order, action):
        mine = f"{action}_scheduledtask"
        others = [permission for permission in ALL if permission != mine]
        row = about(order, state=State.COMPLETED if action == Action.REDRIVE else State.SCHEDULED)

        assert act(browse(person("others", *others)), action, row, at="2026-04-01T12:00").status_code == 403
        with_it = browse(person("with", "view_scheduledtask", mine))
        assert act(with_it, action, row, at="2026-04-01T12:00").status_code == 302

    def test_is_not_found_for_what_one_may_not_see(self, browse, person, about):
        hidden = about(person("ada"), task_key="account.welcome")

        assert act(browse(person("staff", "cancel_scheduledtask")), "cancel", hidden).status_code == 404
        assert state_of(hidden) == "scheduled"

    def test_keeps_the_reason_and_who_decided(self, operator, about, order):
        row = about(order)

        act(operator, "cancel", row, reason="  they asked ")

        entry = LogEntry.objects.get(task=row)
        assert (entry.reason, entry.actor) == ("they asked", "operator@example.com")

    @pytest.mark.parametrize("reason", ["", "   ", "x" * 201])
    def test_wants_a_reason_of_one_to_two_hundred_characters(self, operator, about, order, reason):
        row = about(order)

        response = act(operator, "cancel", row, reason=reason)

        assert response.context["form"].errors.keys() == {"reason"}
        assert state_of(row) == "scheduled"

    def test_takes_two_hundred_characters(self, operator, about, order):
        assert act(operator, "cancel", about(order), reason="é" * 200).status_code == 302

    def test_leads_back_to_the_list_as_it_was_or_to_the_task(self, operator, about, order):
        listed, alone = about(order), about(order)

        from_list = act(operator, "cancel", listed, where="?timeline=care&evil=https://example.com")
        from_task = act(operator, "cancel", alone, alone="1")

        assert from_list.url == f"{LIST}?timeline=care"
        assert from_task.url == detail(alone)

    def test_redrives_to_the_new_task(self, operator, about, order):
        response = act(operator, "redrive", about(order, state=State.CANCELLED), alone="1")

        again = ScheduledTask.objects.get(revision=2)
        assert response.url == detail(again)
        assert "1 task runs again." in text_of(operator.get(response.url))

    def test_of_those_that_can_is_what_the_page_then_asks_for(self, operator, about, order):
        able, unable = about(order), about(order, state=State.DISCARDED)

        text = text_of(ask(operator, "cancel", able, unable))

        assert f'name="task" value="{able.pk}"' in text
        assert f'name="task" value="{unable.pk}"' not in text


class TestMeanwhile:
    def test_changes_nothing_and_names_the_task_if_one_has_changed(self, operator, about, order, monkeypatch):
        """Between the count and the call somebody else was faster."""
        ours, theirs = about(order), about(order)
        count = actions.count

        def slow(*args):
            counted = count(*args)
            if state_of(theirs) == "scheduled":
                cancel(theirs, reason="I was faster", actor="ben")
            return counted

        monkeypatch.setattr("timeline.admin.confirm.count", slow)
        response = act(operator, "cancel", ours, theirs)

        text = text_of(response)
        assert f"Nothing was changed: care.call of testapp.order {order.pk} ({theirs.pk}) is cancelled by now." in text
        assert state_of(ours) == "scheduled"
        assert "1 task will change" in text
        assert 'value="they asked"' in text

    def test_changes_nothing_and_names_what_changed_while_somebody_wrote_the_reason(self, operator, about, order):
        ours, theirs = about(order), about(order)
        cancel(theirs, reason="I was faster", actor="ben")

        text = text_of(act(operator, "cancel", ours, theirs))

        assert f"({theirs.pk}) cannot be any more. The task is cancelled." in text
        assert state_of(ours) == "scheduled"
        assert 'value="they asked"' in text
        assert "Cancel 1 task" in text

    def test_changes_nothing_if_one_is_not_there_any_more(self, operator, about, order):
        ours, gone = about(order), about(order)
        ScheduledTask.objects.filter(pk=gone.pk).delete()

        assert "one of the tasks is not there any more." in text_of(act(operator, "cancel", ours, gone))
        assert state_of(ours) == "scheduled"

    def test_says_so_if_a_later_revision_is_open(self, operator, about, order):
        first = about(order, state=State.CANCELLED)
        act(operator, "redrive", first)

        response = act(operator, "redrive", first)

        assert "cannot be any more. A later revision carries on for it" in text_of(response)
        assert ScheduledTask.objects.count() == 2


class TestSeen:
    """What somebody decides about, they have looked at as it is."""

    @pytest.mark.parametrize("action", [Action.CANCEL, Action.MOVE, Action.RUN_NOW])
    def test_what_was_moved_meanwhile_is_looked_at_again(self, operator, about, order, action, clock):
        row = about(order)
        seen = re.findall(r'name="seen" value="([^"]+)"', text_of(ask(operator, action, row)))
        theirs = clock.now + timedelta(days=9)
        move(row, at=theirs, reason="they are away", actor="ben")

        response = act(operator, action, row, at="2026-04-01T12:00", seen=seen)

        assert f"({row.pk}) has changed since you looked." in text_of(response)
        moved = f"On {clock.now:%Y-%m-%d %H:%M} it was moved from"
        assert moved in text_of(response)
        assert f"to {theirs:%Y-%m-%d %H:%M}: they are away, by ben." in text_of(response)
        assert 'value="they asked"' in text_of(response)
        row.refresh_from_db()
        assert (row.state, row.scheduled_at) == ("scheduled", theirs)

        seen = re.findall(r'name="seen" value="([^"]+)"', text_of(response))
        assert act(operator, action, row, at="2026-04-01T12:00", seen=seen).status_code == 302

    def test_what_was_redriven_and_ended_meanwhile_is_not_redriven_again(self, operator, about, order):
        row = about(order, state=State.DISCARDED)
        seen = re.findall(r'name="seen" value="([^"]+)"', text_of(ask(operator, "redrive", row)))
        [again] = redrive(row, reason="faster")
        cancel(again, reason="after all not")

        assert "cannot be any more. A later revision carries on" in text_of(act(operator, "redrive", row, seen=seen))
        assert ScheduledTask.objects.count() == 2

    def test_what_has_a_later_revision_is_not_offered_to_be_redriven(self, operator, about, order):
        """It would be refused at each confirmation, however often one looks."""
        row = about(order, state=State.DISCARDED)
        [again] = redrive(row, reason="once more")
        cancel(again, reason="after all not")

        assert 'value="redrive"' not in text_of(operator.get(detail(row)))
        assert "A later revision carries on for it; look at that one." in text_of(ask(operator, "redrive", row))
        assert 'value="redrive"' in text_of(operator.get(detail(again)))

    def test_what_is_redriven_between_the_count_and_the_call_is_told_with_the_way_on(
        self, operator, about, order, monkeypatch
    ):
        row, count = about(order, state=State.DISCARDED), actions.count
        seen = re.findall(r'name="seen" value="([^"]+)"', text_of(ask(operator, "redrive", row)))

        def slow(*args):
            counted = count(*args)
            if ScheduledTask.objects.count() == 1:
                cancel(redrive(row, reason="faster")[0], reason="after all not")
            return counted

        monkeypatch.setattr("timeline.admin.confirm.count", slow)

        assert "It was redriven; look at its latest revision." in text_of(act(operator, "redrive", row, seen=seen))

    def test_one_that_changed_stops_them_all(self, operator, about, order, clock):
        ours, theirs = about(order), about(order)
        seen = re.findall(r'name="seen" value="([^"]+)"', text_of(ask(operator, "cancel", ours, theirs)))
        move(theirs, at=clock.now + timedelta(days=9), reason="they are away")

        act(operator, "cancel", ours, theirs, seen=seen)

        assert state_of(ours) == "scheduled"

    def test_between_the_count_and_the_call_counts_too(self, operator, about, order, clock, monkeypatch):
        row, count = about(order), actions.count
        seen = re.findall(r'name="seen" value="([^"]+)"', text_of(ask(operator, "cancel", row)))

        def slow(*args):
            counted = count(*args)
            if ScheduledTask.objects.get(pk=row.pk).seq == row.seq:
                move(row.pk, at=clock.now + timedelta(days=9), reason="faster")
            return counted

        monkeypatch.setattr("timeline.admin.confirm.count", slow)

        assert f"({row.pk}) has changed since you looked." in text_of(act(operator, "cancel", row, seen=seen))
        assert state_of(row) == "scheduled"

    @pytest.mark.parametrize("seen", ["x", "1:2", "a:b:c", "\x00"])
    def test_nonsense_is_not_found(self, operator, about, order, seen):
        assert act(operator, "cancel", about(order), seen=seen).status_code == 404


class TestMistakes:
    """Who made one hears of it first, and at the field."""

    def test_are_summed_up_and_described_at_their_field(self, operator, about, order):
        text = text_of(act(operator, "move", about(order), reason="", at="2026-02-01T12:00"))

        assert "<title>Error: " in text
        assert 'role="alert" tabindex="-1" autofocus' in text
        assert '<a href="#id_reason">Reason: This field is required.</a>' in text
        assert '<a href="#id_at">New time: This time has passed.' in text
        described = re.search(r'<input[^>]*name="reason"[^>]*aria-describedby="([^"]+)"', text).group(1).split()
        assert all(f'id="{name}"' in text for name in described)
        assert "id_reason_error" in described
        assert len(re.findall('aria-invalid="true"', text)) == 2

    def test_are_not_spoken_of_where_there_are_none(self, operator, about, order):
        text = text_of(ask(operator, "move", about(order)))

        assert "Error:" not in text
        assert "autofocus" not in text


class TestAnExpiredSession:
    """What was typed is there after the login."""

    def log_in_again(self, client, user, response):
        """As a browser does: by the form, and on to where it leads."""
        assert response.status_code == 302
        assert "/admin/login/" in response.url
        user.set_password("of the tests only")
        user.save()
        return client.post(response.url, {"username": user.email, "password": "of the tests only"}, follow=True)

    def test_keeps_reason_and_time_and_asks_anew(self, person, about, order):
        row, user, client = about(order), person("operator", *ALL), Client()

        response = act(
            client,
            "move",
            row,
            reason="they <asked>",
            at="2026-04-01T12:00",
            where="?timeline=care",
            who=made_for(user),
        )
        back = self.log_in_again(client, user, response)

        text = text_of(back)
        assert back.redirect_chain == [(ACT, 302)]
        assert "You had to log in again. Nothing was changed" in text
        assert 'value="they &lt;asked&gt;"' in text
        assert 'value="2026-04-01T12:00"' in text
        assert 'value="?timeline=care"' in text
        assert f'name="seen" value="{row.pk}:' in text
        assert "Error:" not in text
        assert not LogEntry.objects.exists()

        assert act(client, "move", row, at="2026-04-01T12:00").status_code == 302
        assert client.get(ACT, follow=True).redirect_chain == [(LIST, 302)]

    def test_keeps_what_was_chosen_in_the_list(self, person, about, order):
        rows, user, client = [about(order) for _ in range(200)], person("operator", *ALL), Client()

        text = text_of(self.log_in_again(client, user, ask(client, "cancel", *rows, who=made_for(user))))

        assert "Cancel 200 tasks" in text

    @pytest.mark.parametrize("who", ["", "1", "1:x", "1:" + "A" * 43, "\x00", None])
    def test_keeps_nothing_of_who_was_never_shown_a_form(self, person, who):
        """Each such request would write a row of a session."""
        person("operator", *ALL)
        said = {"action": "cancel", "task": ["x"], "reason": "x"}

        response = Client().post(ACT, said if who is None else said | {"who": who})

        assert response.status_code == 302
        assert not Session.objects.exists()

    def test_keeps_no_more_than_fits_a_form_of_ours(self, person):
        """Nobody has to be logged in to have it kept, with a form from before."""
        long = "".join(chr(0x4E00 + number % 20000) for number in range(2000))

        who = made_for(person("operator", *ALL))

        Client().post(
            ACT, {"who": who, "action": long, "task": [f"{number}{long}" for number in range(300)], "reason": long}
        )

        assert len(str(Session.objects.get().get_decoded())) < 15_000

    def test_keeps_it_for_nobody_else(self, person, browse, about, order):
        """Who logs in on the same machine does not read it, nor sign it."""
        row, ada, ben = about(order), person("ada", *ALL), person("ben", *ALL)
        shown = re.findall(r'name="who" value="([^"]+)"', text_of(ask(browse(ada), "cancel", row)))
        client = Client()

        response = act(client, "cancel", row, reason="ada's words", who=shown)
        back = self.log_in_again(client, ben, response)

        assert shown == [made_for(ada)]
        assert back.redirect_chain == [(ACT, 302), (LIST, 302)]
        assert "ada" not in str(client.session.items())
        assert "Choose the tasks first." in text_of(back)

    @pytest.mark.parametrize("page", ["list", "task", "act"])
    def test_is_kept_for_whom_each_form_was_made(self, person, browse, about, order, page):
        row, ada = about(order), person("ada", *ALL)
        client = browse(ada)
        pages = {"list": client.get(LIST), "task": client.get(detail(row)), "act": ask(client, "cancel", row)}

        assert f'name="who" value="{made_for(ada)}"' in text_of(pages[page])

    def test_gives_nobody_a_right(self, person, about, order):
        row, user, client = about(order), person("viewer", "view_scheduledtask"), Client()

        assert self.log_in_again(client, user, act(client, "cancel", row, who=made_for(user))).status_code == 403
        assert state_of(row) == "scheduled"

    def test_keeps_nothing_without_the_token_of_the_form(self, about, order):
        client = Client(enforce_csrf_checks=True)

        assert act(client, "cancel", about(order)).status_code == 403
        assert not client.session.keys()


class TestMethods:
    @pytest.mark.parametrize("method", ["put", "delete", "patch", "post", "options"])
    def test_that_pages_do_not_have_are_refused(self, operator, about, order, method):
        row = about(order)

        for path in (LIST, detail(row), f"{ENTITY}?label=testapp.order&id={order.pk}"):
            assert getattr(operator, method)(path).status_code == 405
        assert method == "post" or getattr(operator, method)(ACT).status_code == 405


class TestMoving:
    def test_takes_a_time_on_the_sites_clocks(self, operator, about, order, settings):
        settings.TIME_ZONE = "Europe/Berlin"
        row = about(order)

        act(operator, "move", row, at="2026-07-01T12:00")

        row.refresh_from_db()
        assert row.scheduled_at == datetime(2026, 7, 1, 10, 0, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("at", "said"),
        [
            ("", "Give a time, or by how much to move."),
            ("tomorrow", "Enter a valid date/time."),
            ("2026-02-30T12:00", "Enter a valid date/time."),
            ("2026-02-01T12:00", "This time has passed."),
            ("9500-01-01T12:00", "between the years 1970 and 9000"),
            ("9999-12-31T23:59", "between the years 1970 and 9000"),
            ("2026-03-29T02:30", "be interpreted in time zone Europe/Berlin"),
            ("2026-10-25T02:30", "be interpreted in time zone Europe/Berlin"),
        ],
    )
    def test_refuses_nonsense(self, operator, about, order, settings, at, said):
        """Clocks never show the last time but one, and show the last twice."""
        settings.TIME_ZONE = "Europe/Berlin"
        row = about(order)

        response = act(operator, "move", row, at=at)

        assert said in text_of(response)
        assert ScheduledTask.objects.get(pk=row.pk).scheduled_at == row.scheduled_at

    def test_shows_what_was_typed_again(self, operator, about, order):
        assert 'value="2026-02-01T12:00"' in text_of(act(operator, "move", about(order), at="2026-02-01T12:00"))

    def test_of_what_is_due_leads_to_its_next_revision(self, operator, about, order, now):
        row = about(order, state=State.AVAILABLE)

        response = act(operator, "move", row, at=(now + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M"), alone="1")

        assert response.url == detail(ScheduledTask.objects.get(previous=row))
