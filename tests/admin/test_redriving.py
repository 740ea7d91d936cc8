"""The page that redrives all that failed alike."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from tests.admin.conftest import text_of
from timeline.admin import portions
from timeline.lifecycle import State
from timeline.models import ScheduledTask

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


def sent_again(page):
    """What the form of a page that is under way would send."""
    return dict(
        re.findall(r'name="(\w+)" value="([^"]*)"', page.content.decode().partition("data-timeline-going-on")[2])
    )


class TestRedriveAll:
    def test_counts_and_changes_nothing_yet(self, operator, dead):
        page = text_of(operator.get(ONE))

        assert "Redrive all 7 tasks" in page
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

    def test_goes_on_portion_by_portion_and_ends(self, operator, dead, monkeypatch):
        monkeypatch.setattr(portions, "PORTION", 3)
        monkeypatch.setattr(portions, "A_TURN", 0)

        first = operator.post(ONE, GIVEN)
        done = again().count()
        second = operator.post(ONE, sent_again(first))
        last = operator.post(ONE, sent_again(second), follow=True)

        assert "3 of 7" in text_of(first)
        assert done == 3
        assert "6 of 7" in text_of(second)
        assert "7 tasks run again." in text_of(last)
        assert again().count() == 7

    def test_leaves_what_fails_while_it_goes_on(self, operator, dead, monkeypatch, about, order, clock):
        monkeypatch.setattr(portions, "PORTION", 3)
        monkeypatch.setattr(portions, "A_TURN", 0)
        first = operator.post(ONE, GIVEN)
        clock.advance(minutes=1)
        late = about(order, state=State.DISCARDED, fingerprint="1" * 16, finished_at=clock.now)

        page = first
        while page.status_code == 200:
            page = operator.post(ONE, sent_again(page))

        assert not again().filter(previous=late).exists()
        assert again().count() == 7

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
