"""The page of dead letters."""

from __future__ import annotations

from datetime import timedelta

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

        assert ">Run all 3 again…</a>" in page
        assert ">Run it again…</a>" in page

    def test_shows_those_of_one_task_and_how_to_see_all(self, operator, dead, about, order):
        about(order, task_key="care.greet", state=State.DISCARDED, fingerprint="3" * 16)

        page = text_of(operator.get(DEAD, {"task": "care.greet", "since": "day"}))

        assert f"?group={'3' * 16}" in page
        assert f"?group={ONE}" not in page
        assert f'href="{DEAD}?since=day" title="Remove this filter"' in page
        assert f'href="{DEAD}?since=week&amp;task=care.greet"' in page
        assert "There are no dead letters" in text_of(operator.get(DEAD, {"task": "care.\x00"}))

    def test_redrives_those_of_a_group_by_the_page_that_asks(self, operator, dead):
        asked = {"action": "redrive", "task": [row.pk for row in dead], "confirmed": "1", "reason": "mended"}
        operator.post(ACT, asked)

        assert ScheduledTask.objects.filter(previous__in=dead, state=State.AVAILABLE).count() == 3
        assert "All of this group were run again." in text_of(operator.get(DEAD, {"group": ONE}))
        assert operator.get(DEAD, {"group": "4" * 16}).status_code == 404

    def test_says_that_there_are_none(self, operator):
        assert "There are no dead letters" in text_of(operator.get(DEAD))

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
        assert "Run these 2 tasks again…" in page
        assert sum(f'name="task" value="{row.pk}"' in page for row in dead) == 2

    def test_shows_what_failed_lately_alone(self, operator, dead, clock):
        clock.advance(days=2)

        assert "at any time" in text_of(operator.get(DEAD))
        assert "Nothing failed for good in this time." in text_of(operator.get(DEAD, {"since": "day"}))
        assert "3 tasks" in text_of(operator.get(DEAD, {"since": "week"}))
        assert "3 tasks" in text_of(operator.get(DEAD, {"since": "nonsense"}))

    def test_counts_what_is_to_be_tried_again(self, operator, about, order):
        for hours in (3, 2):
            about(order, hours, state=State.RETRYABLE, attempt=1, reason_code="error")
        about(order, 4, state=State.RETRYABLE, attempt=1, reason_code="waiting", task_key="care.greet")

        page = text_of(operator.get(DEAD))

        assert "Failing now, will be tried again" in page
        assert '?state=retryable&amp;task=care.call">care.call</a></td><td data-name="Tasks">2</td>' in page
        assert "task=care.greet" not in page


FULL = "smtplib.SMTPException: 552 the mailbox of '{}' is full"


@pytest.fixture
def full(about, order, now):
    """One full mailbox, for which two kinds of tasks failed, at two hours."""
    for number, hours in ((1, 5), (2, 5), (3, 2)):
        at = {"finished_at": now - timedelta(hours=hours), "error": FULL.format(number)}
        about(order, state=State.DISCARDED, fingerprint="5" * 16, definition_hash="0ld" * 4, **at)
    error = {"error": FULL.format(4), "finished_at": now - timedelta(hours=1)}
    about(order, task_key="care.greet", state=State.DISCARDED, fingerprint="6" * 16, **error)


def cause_in(response):
    [cause] = response.context["causes"]
    return cause


class TestCauses:
    def test_are_one_for_all_kinds_of_tasks_with_the_same_error(self, operator, full):
        cause = cause_in(operator.get(DEAD))

        assert [(kind.letters.task_key, kind.letters.count) for kind in cause.kinds] == [
            ("care.call", 3),
            ("care.greet", 1),
        ]
        assert cause.message == "SMTPException: … the mailbox of … is full"
        assert cause.oldest == "5\xa0hours"

    def test_are_several_where_the_message_has_no_fixed_words(self, operator, about, order):
        for mark, key in (("7", "care.call"), ("8", "care.greet")):
            about(order, task_key=key, state=State.DISCARDED, fingerprint=mark * 16, error="KeyError: 'name'")

        assert len(operator.get(DEAD).context["causes"]) == 2

    def test_say_in_which_version_they_were_seen_first(self, operator, full, about, order):
        page = text_of(operator.get(DEAD))

        assert "first seen in version 0ld0ld0l of its definition, which has changed since" in page

    def test_have_a_bar_for_each_hour_in_which_tasks_failed(self, operator, full):
        cause = cause_in(operator.get(DEAD))
        day = cause_in(operator.get(DEAD, {"since": "day"}))

        assert (cause.chart.width, cause.chart.path.count("M")) == (168, 3)
        assert (day.chart.width, day.chart.path.split("v")[0]) == (24, "M18 28")
        assert "most at 2026-03-01 04:00, 2 tasks" in text_of(operator.get(DEAD))

    def test_have_no_chart_where_all_failed_long_ago(self, operator, full, clock):
        clock.advance(days=9)

        assert cause_in(operator.get(DEAD)).chart is None

    def test_lead_to_all_of_their_tasks(self, operator, full, dead, django_assert_max_num_queries):
        causes = operator.get(DEAD).context["causes"]
        where = next(each.where for each in causes if each.cause.count == 4 and len(each.kinds) == 2)

        with django_assert_max_num_queries(12):
            response = operator.get(DEAD + where)

        assert {row.task.task_key for row in response.context["rows"]} == {"care.call", "care.greet"}
        assert len(response.context["rows"]) == 4

    def test_say_nothing_of_their_errors_to_who_may_not_read_them(self, person, browse, full):
        page = text_of(browse(person("vera", "view_scheduledtask")).get(DEAD))

        assert "mailbox" not in page
        assert "care.greet" in page

    @pytest.mark.parametrize("key", ["9" * 16, "\x00"])
    def test_that_are_gone_are_said_to_be(self, operator, full, key):
        assert "No task that failed for this cause is left" in text_of(operator.get(DEAD, {"cause": key}))

    def test_take_no_more_statements_for_many_kinds(self, operator, full, about, order, django_assert_max_num_queries):
        for number in range(20):
            about(order, state=State.DISCARDED, fingerprint=f"{number:016}", error=f"KeyError: '{number}'")

        with django_assert_max_num_queries(12):
            operator.get(DEAD)
