"""The page that redrives all that failed alike."""

from __future__ import annotations

import re
from typing import ClassVar
from uuid import UUID

import pytest
from django.urls import reverse

from tests.admin.conftest import text_of
from timeline.admin import dead_letters
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.policy import TimelinePolicy

REDRIVE = reverse("admin:timeline_scheduledtask_redrive")
DEAD = reverse("admin:timeline_scheduledtask_dead")
ONE = f"{REDRIVE}?group={'1' * 16}"
GIVEN = {"spread": "0", "reason": "the server is back"}


@pytest.fixture
def dead(about, order):
    """Seven that failed alike, and one that did not."""
    about(order, state=State.DISCARDED, fingerprint="2" * 16)
    return [about(order, state=State.DISCARDED, fingerprint="1" * 16) for _ in range(7)]


def again():
    return ScheduledTask.objects.filter(previous__isnull=False)


def shown_place(page):
    """What the form of a page says of where it stands."""
    return dict(re.findall(r'name="(before|after|changed|left|total|bulk)" value="([^"]*)"', page.content.decode()))


class TestRedriveAll:
    def test_counts_and_changes_nothing_yet(self, operator, dead):
        page = text_of(operator.get(ONE))

        assert "Run all 7 tasks again" in page
        assert not again().exists()

    def test_says_what_failed(self, operator, person, browse, dead, about, order):
        about(order, state=State.DISCARDED, fingerprint="4" * 16, error="ConnectionError: <no>")
        where, reader = (
            f"{REDRIVE}?group={'4' * 16}",
            browse(person("rita", "view_scheduledtask", "redrive_scheduledtask")),
        )

        page, without = text_of(operator.get(where)), text_of(reader.get(where))

        assert "<strong>care.call</strong>" in page
        assert "ConnectionError: &lt;no&gt;" in page
        assert "<strong>care.call</strong>" in without
        assert "ConnectionError" not in without

    def test_redrives_all_of_them_and_no_other(self, operator, dead):
        answer = operator.post(ONE, GIVEN, follow=True)

        assert set(again().values_list("previous", flat=True)) == {row.pk for row in dead}
        assert {(row.reason, row.actor) for row in again()} == {("the server is back", "operator@example.com")}
        assert "7 tasks run again." in text_of(answer)

    def test_leaves_what_has_failed_since_it_counted(self, operator, dead, about, order, clock):
        counted = shown_place(operator.get(ONE))
        clock.advance(minutes=1)
        late = about(order, state=State.DISCARDED, fingerprint="1" * 16, finished_at=clock.now)

        operator.post(ONE, GIVEN | counted)

        assert not again().filter(previous=late).exists()
        assert again().count() == 7

    def test_redrives_no_more_than_a_few_at_once_whatever_is_sent_for_the_count(
        self, operator, dead, monkeypatch, clock
    ):
        monkeypatch.setattr(dead_letters, "PORTION", 3)
        place = {"before": clock.now.isoformat(), "after": "", "changed": "0", "left": "0", "total": "2"}

        operator.post(ONE, GIVEN | place)

        assert again().count() == 3

    def test_spreads_them(self, operator, dead):
        operator.post(ONE, GIVEN | {"spread": "3600"})

        assert len(set(again().values_list("scheduled_at", flat=True))) > 1

    @pytest.mark.parametrize(
        "given",
        [{"reason": ""}, {"reason": "x" * 201}, {"spread": "12"}, {"spread": "x"}],
    )
    def test_says_what_is_wrong_and_redrives_nothing(self, operator, dead, given):
        page = operator.post(ONE, GIVEN | given)

        assert "Nothing was changed yet" in text_of(page)
        assert not again().exists()

    @pytest.mark.parametrize(
        "forged",
        [
            {"after": "x"},
            {"before": "soon"},
            {"total": "-5"},
            {"changed": "9" * 50},
            {"before": "2999-01-01T00:00:00"},
        ],
    )
    def test_begins_anew_or_goes_on_whatever_is_sent_for_the_place(self, operator, dead, forged, clock):
        place = {"before": clock.now.isoformat(), "after": "", "changed": "0", "left": "0", "total": "7"}

        assert operator.post(ONE, GIVEN | place | forged).status_code in (200, 302, 404)

    @pytest.mark.parametrize("query", ["", "?group=", "?group=nothing", "?group=%00"])
    def test_is_not_there_without_a_group(self, operator, dead, query):
        assert operator.get(f"{REDRIVE}{query}").status_code == 404

    def test_is_for_who_may_redrive(self, person, browse, dead):
        viewer = browse(person("vera", "view_scheduledtask"))

        assert viewer.get(ONE).status_code == 403
        assert viewer.post(ONE, GIVEN).status_code == 403
        assert REDRIVE not in text_of(viewer.get(DEAD))
        assert not again().exists()


class OfFew(TimelinePolicy):
    """Shows some, and lets some of them be redriven."""

    seen: ClassVar[list[UUID]] = []
    redrivable: ClassVar[set[UUID]] = set()

    def visible(self, tasks, user):
        return super().visible(tasks, user).filter(pk__in=self.seen)

    def actions(self, user, task):
        return [action for action in super().actions(user, task) if task.pk in self.redrivable]


@pytest.fixture
def full(about, order, dead):
    """One cause, for which tasks of two kinds failed."""
    error = {"state": State.DISCARDED, "error": "OSError: [Errno 28] no space left"}
    calls = [about(order, fingerprint="5" * 16, **error) for _ in range(2)]
    return [*calls, about(order, task_key="care.greet", fingerprint="6" * 16, **error)]


def where_of_cause(client):
    [cause] = [each for each in client.get(DEAD).context["causes"] if len(each.kinds) == 2]
    return REDRIVE + cause.where


class TestRedriveCause:
    def test_counts_each_kind(self, operator, full):
        page = text_of(operator.get(where_of_cause(operator)))

        assert "Run 3 tasks again that failed alike" in page
        assert 'care.greet</strong> <span class="tl-quiet">1 task</span>' in page

    def test_runs_all_kinds_again_and_no_other(self, operator, full):
        operator.post(where_of_cause(operator), GIVEN)

        assert set(again().values_list("previous", flat=True)) == {row.pk for row in full}

    def test_asks_the_policy_about_each_kind(self, operator, full, settings):
        settings.TIMELINE = {**settings.TIMELINE, "POLICY": "tests.admin.test_redriving.NoGreetings"}
        where = where_of_cause(operator)

        page = text_of(operator.get(where))
        operator.post(where, GIVEN)

        assert page.count("You may not run these again") == 1
        assert set(again().values_list("task_key", flat=True)) == {"care.call"}

    def test_is_not_there_without_one(self, operator, full):
        assert operator.get(f"{REDRIVE}?cause={'9' * 16}").status_code == 404


class NoGreetings(TimelinePolicy):
    """Lets nobody run greetings again."""

    def allows(self, user, action, task=None):
        return super().allows(user, action, task) and (task is None or task.task_key != "care.greet")
