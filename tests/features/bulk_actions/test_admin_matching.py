"""Acting on all of many that match: a bulk action is begun, which polls do."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, date, timedelta

import pytest

from tests.admin import conftest as admin
from tests.admin import test_matching as matching
from tests.admin.conftest import text_of
from tests.admin.test_matching import ALL_OF_IT, CANCEL, states
from tests.conftest import NOW
from tests.testapp.models import Order
from timeline.admin import act_on_all
from timeline.admin.list_query import Question
from timeline.features.bulk_actions.poll import act_in_bulk
from timeline.lifecycle import State
from timeline.models import BulkAction, ScheduledTask

about = admin.about  # Fixtures.
browse = admin.browse
clock = admin.clock
operator = admin.operator
person = admin.person

calls = matching.calls  # Fixtures.


class TestMany:
    """Of many, a bulk action is begun, which polls do."""

    @pytest.fixture(autouse=True)
    def _many(self, monkeypatch):
        monkeypatch.setattr(act_on_all, "MANY", 5)

    @pytest.fixture
    def polls(self, clock):
        return lambda: act_in_bulk(now=clock.now, using="default")

    def test_are_changed_by_polls_and_shown_on_a_page(self, operator, calls, polls):
        assert "So many are changed by polls" in text_of(operator.get(CANCEL))

        response = operator.post(CANCEL, {"reason": "the campaign is over"}, follow=True)

        assert "0 of 7" in text_of(response)
        assert states() == ["scheduled"] * 7
        polls()
        assert states() == ["cancelled"] * 7
        assert states("care.greet") == ["scheduled"]
        row = ScheduledTask.objects.filter(state="cancelled").first()
        assert (row.reason, row.actor) == ("the campaign is over", "operator@example.com")
        assert "7 of 7" in text_of(operator.get(response.redirect_chain[-1][0]))

    def test_are_begun_once_however_often_the_form_is_sent(self, operator, calls):
        bulk = operator.get(CANCEL).context["bulk_id"]

        first, second = (operator.post(CANCEL, {"reason": "over", "bulk": bulk}).headers["Location"] for _ in range(2))

        assert first == second
        assert BulkAction.objects.get().pk == bulk

    @pytest.mark.parametrize("forged", ["", "x", "\x00"])
    def test_are_begun_whatever_is_sent_for_the_id(self, operator, calls, forged):
        assert operator.post(CANCEL, {"reason": "over", "bulk": forged}).status_code == 302
        assert BulkAction.objects.count() == 1

    def test_are_moved_to_a_time(self, operator, calls, clock, polls):
        at = clock.now + timedelta(days=2)

        operator.post(
            f"{ALL_OF_IT}?task=care.call&action=move", {"reason": "later", "at": at.strftime("%Y-%m-%dT%H:%M")}
        )
        polls()

        assert {row.scheduled_at for row in ScheduledTask.objects.filter(task_key="care.call")} == {at}

    @pytest.mark.parametrize(
        "where",
        [
            "kind=testapp.order&timeline=care",
            "q=testapp.order {id}",
            "q={id}",
            "state=scheduled&day=2026-03-01",
            "state=overdue",
            "state=open",
            "state=all",
            "day=2026-03-01&hour=8",
        ],
    )
    def test_are_those_that_the_page_counted(self, operator, about, order, polls, where, monkeypatch):
        """What the question means in the list, it means as a bulk action, too."""
        monkeypatch.setattr(act_on_all, "MANY", 0)
        for hours in (-1, 0, 1, 3, 30):
            about(order, hours, task_key="care.call")
        about(Order.objects.create(), 2)
        address = f"{ALL_OF_IT}?{where.format(id=order.pk)}&action=cancel"
        counted = operator.get(address).context["place"].total

        operator.post(address, {"reason": "over"})
        polls()

        assert 0 < counted == ScheduledTask.objects.filter(state="cancelled").count()
        assert BulkAction.objects.get().skipped == {}

    def test_go_by_why_and_when_tasks_ended(self, operator, about, order, polls, clock, monkeypatch):
        monkeypatch.setattr(act_on_all, "MANY", 0)
        for reason_code, days in (("worker_lost", 2), ("worker_lost", 9), ("error", 2)):
            ended = clock.now - timedelta(days=days)
            about(order, -1, state=State.DISCARDED, reason_code=reason_code, finished_at=ended)
        address = f"{ALL_OF_IT}?state=discarded&reason=worker_lost&ended=week&action=redrive"
        assert operator.get(address).context["place"].total == 1

        operator.post(address, {"reason": "again"})
        polls()

        assert (BulkAction.objects.get().matched, ScheduledTask.objects.filter(revision=2).count()) == (1, 1)

    # What payloads say is never acted on at once: see the tests of the list.
    @pytest.mark.parametrize(
        "name", sorted({field.name for field in fields(Question)} - {"after", "before", "payload"})
    )
    def test_keep_all_that_a_question_asks(self, name):
        """One that is left out would let an action reach tasks that nobody was shown."""
        asks = {
            "state": "ended",
            "timeline": "care",
            "task": "care.call",
            "kind": "testapp.order",
            "day": date(2026, 3, 1),
            "hour": 8,
            "reason": "error",
            "ended": "day",
            "q": "7",
        }
        whole = Question(**asks).as_filters(now=NOW, zone=UTC)
        without = Question(**{**asks, name: Question.__dataclass_fields__[name].default})

        assert without.as_filters(now=NOW, zone=UTC) != whole

    def test_leave_what_came_since_it_was_counted(self, operator, calls, about, order, clock, polls):
        place = {"after": "", "changed": 0, "left": 0, "total": 7, "before": clock.now.isoformat()}
        clock.set(clock.now + timedelta(minutes=1))
        late = about(order, 9)
        ScheduledTask.objects.filter(pk=late.pk).update(created_at=clock.now)

        operator.post(CANCEL, {"reason": "over", **place})
        polls()

        late.refresh_from_db()
        assert late.state == "scheduled"
        assert states().count("cancelled") == 7

    def test_ask_why_first(self, operator, calls):
        assert "This field is required." in text_of(operator.post(CANCEL, {"reason": ""}))
        assert not BulkAction.objects.exists()
