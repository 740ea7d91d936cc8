"""The page of dead letters."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.admin.conftest import ACT, LIST, text_of
from timeline.lifecycle import State
from timeline.models import ScheduledTask

DEAD = reverse("admin:timeline_scheduledtask_dead")
ONE = "1" * 16


@pytest.fixture
def dead(about, order):
    rows = [about(order, state=State.DISCARDED, error="ValueError: <secret>", fingerprint=ONE) for _ in range(3)]
    about(order, state=State.DISCARDED, fingerprint="2" * 16)
    return rows


class TestDeadLetters:
    def test_shows_groups_that_lead_to_their_tasks(self, operator, dead):
        page = text_of(operator.get(DEAD))

        assert f"?group={ONE}" in page
        assert "3 tasks" in page
        assert "ValueError: &lt;secret&gt;" in page
        assert DEAD in text_of(operator.get(LIST))

    def test_says_how_many_are_redriven_where_there_are_several(self, operator, dead):
        page = text_of(operator.get(DEAD))

        assert ">Redrive all 3…</a>" in page
        assert ">Redrive it…</a>" in page

    def test_shows_those_of_one_task_and_how_to_see_all(self, operator, dead, about, order):
        about(order, task_key="care.greet", state=State.DISCARDED, fingerprint="3" * 16)

        page = text_of(operator.get(DEAD, {"task": "care.greet", "since": "day"}))

        assert f"?group={'3' * 16}" in page
        assert f"?group={ONE}" not in page
        assert f'href="{DEAD}?since=day" title="Remove this filter"' in page
        assert f'href="{DEAD}?since=week&amp;task=care.greet"' in page
        assert "There are no dead letters." in text_of(operator.get(DEAD, {"task": "care.\x00"}))

    def test_redrives_those_of_a_group_by_the_page_that_asks(self, operator, dead):
        asked = {"action": "redrive", "task": [row.pk for row in dead], "confirmed": "1", "reason": "mended"}
        operator.post(ACT, asked)

        assert ScheduledTask.objects.filter(previous__in=dead, state=State.AVAILABLE).count() == 3
        assert "All of this group were run again." in text_of(operator.get(DEAD, {"group": ONE}))
        assert operator.get(DEAD, {"group": "4" * 16}).status_code == 404

    def test_says_that_there_are_none(self, operator):
        assert "There are no dead letters." in text_of(operator.get(DEAD))

    def test_shows_no_error_and_no_button_to_who_may_not(self, person, browse, dead):
        page = text_of(browse(person("vera", "view_scheduledtask")).get(DEAD, {"group": ONE}))

        assert "secret" not in page
        assert 'value="redrive"' not in page

    def test_is_not_there_for_who_sees_no_task(self, person, browse, dead):
        assert browse(person("nora")).get(DEAD).status_code in (302, 403)

    def test_is_not_there_for_a_group_that_no_database_looks_for(self, operator, dead):
        assert operator.get(DEAD, {"group": "\x00"}).status_code == 404

    def test_takes_the_same_number_of_statements_for_many(
        self, operator, dead, about, order, django_assert_max_num_queries
    ):
        for _ in range(20):
            about(order, state=State.DISCARDED, fingerprint=ONE)

        with django_assert_max_num_queries(12):
            operator.get(DEAD, {"group": ONE})

    def test_has_one_button_for_a_group_that_is_shown_whole(self, operator, dead, monkeypatch):
        assert 'value="redrive"' not in text_of(operator.get(DEAD, {"group": ONE}))

        monkeypatch.setattr("timeline.admin.dead_letters.AT_A_TIME", 2)

        page = text_of(operator.get(DEAD, {"group": ONE}))
        assert "Redrive these 2 tasks…" in page
        assert sum(f'name="task" value="{row.pk}"' in page for row in dead) == 2

    def test_shows_what_failed_lately_alone(self, operator, dead, clock):
        clock.advance(days=2)

        assert "at any time" in text_of(operator.get(DEAD))
        assert "Nothing was given up in this time." in text_of(operator.get(DEAD, {"since": "day"}))
        assert "3 tasks" in text_of(operator.get(DEAD, {"since": "week"}))
        assert "3 tasks" in text_of(operator.get(DEAD, {"since": "nonsense"}))

    def test_counts_what_is_to_be_tried_again(self, operator, about, order):
        for hours in (3, 2):
            about(order, hours, state=State.RETRYABLE, attempt=1, reason_code="error")
        about(order, 4, state=State.RETRYABLE, attempt=1, reason_code="waiting", task_key="care.greet")

        page = text_of(operator.get(DEAD))

        assert "To be tried again" in page
        assert '?state=retryable&amp;task=care.call">care.call</a></td><td data-name="Tasks">2</td>' in page
        assert "task=care.greet" not in page
