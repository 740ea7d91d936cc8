"""Actions: count first, ask for a reason, all or nothing, each by its own permission."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.admin.conftest import ACT, ALL, LIST, detail, text_of
from timeline.admin import acting
from timeline.lifecycle import FINAL, OPEN, WAITING, State
from timeline.models import LogEntry, ScheduledTask
from timeline.policy import Action
from timeline.shortcuts import cancel, emit

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

        assert operator.get(ACT, {"action": "cancel", "task": row.pk, "confirmed": 1, "reason": "x"}).status_code == 405
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
    @pytest.mark.parametrize("action", Action)
    @pytest.mark.parametrize("state", State)
    def test_does_what_the_state_lets_happen(self, operator, about, order, action, state):
        row = about(order, state=state)

        response = act(operator, action, row, at="2026-04-01T12:00")

        assert response.status_code == (302 if state in STATES[action] else 200)
        assert (LogEntry.objects.exists() or ScheduledTask.objects.count() == 2) == (state in STATES[action])

    @pytest.mark.parametrize("action", Action)
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
        assert "1 task was redriven." in text_of(operator.get(response.url))

    def test_of_those_that_can_is_what_the_page_then_asks_for(self, operator, about, order):
        able, unable = about(order), about(order, state=State.DISCARDED)

        text = text_of(ask(operator, "cancel", able, unable))

        assert f'name="task" value="{able.pk}"' in text
        assert f'name="task" value="{unable.pk}"' not in text


class TestMeanwhile:
    def test_changes_nothing_and_names_the_task_if_one_has_changed(self, operator, about, order, monkeypatch):
        """Between the count and the call somebody else was faster."""
        ours, theirs = about(order), about(order)
        count = acting.count

        def slow(*args):
            counted = count(*args)
            if state_of(theirs) == "scheduled":
                cancel(theirs, reason="I was faster", actor="ben")
            return counted

        monkeypatch.setattr("timeline.admin.confirming.count", slow)
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

        assert "Nothing was changed, because of care.call" in text_of(response)
        assert ScheduledTask.objects.count() == 2


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
            ("", "This field is required."),
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
