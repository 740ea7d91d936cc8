"""Redriving many that failed alike: a bulk action is begun, which polls do."""

from __future__ import annotations

import pytest

from tests.admin import conftest as admin
from tests.admin import test_redriving as redriving
from tests.admin.conftest import text_of
from tests.admin.test_redriving import GIVEN, ONE, OfFew, again, shown_place, where_of_cause
from timeline.admin import dead_letters
from timeline.features.bulk_actions import poll
from timeline.features.bulk_actions.poll import act_in_bulk
from timeline.lifecycle import State
from timeline.models import BulkAction, ScheduledTask

about = admin.about  # Fixtures.
browse = admin.browse
clock = admin.clock
operator = admin.operator
person = admin.person

dead = redriving.dead  # Fixtures.
full = redriving.full


class TestMany:
    """Of many, a bulk action is begun, which polls do."""

    @pytest.fixture(autouse=True)
    def _many(self, monkeypatch):
        monkeypatch.setattr(dead_letters, "PORTION", 5)

    @pytest.fixture
    def polls(self, clock):
        return lambda: act_in_bulk(now=clock.now, using="default")

    def test_are_redriven_by_polls_and_shown_on_a_page(self, operator, dead, polls):
        assert "So many are changed by polls" in text_of(operator.get(ONE))

        response = operator.post(ONE, GIVEN | {"spread": "3600"}, follow=True)

        assert "0 of 7" in text_of(response)
        assert "Failed alike" in text_of(response)
        assert "60 minutes" in text_of(response)
        assert not again().exists()
        polls()
        assert set(again().values_list("previous", flat=True)) == {row.pk for row in dead}
        assert {(row.reason, row.actor) for row in again()} == {("the server is back", "operator@example.com")}
        assert len(set(again().values_list("scheduled_at", flat=True))) > 1
        assert "7 of 7" in text_of(operator.get(response.redirect_chain[-1][0]))

    def test_are_begun_once_however_often_the_form_is_sent(self, operator, dead):
        given = GIVEN | shown_place(operator.get(ONE))

        first, second = (operator.post(ONE, given).headers["Location"] for _ in range(2))

        assert first == second
        assert str(BulkAction.objects.get().pk) == given["bulk"]

    def test_say_what_is_wrong_and_begin_nothing(self, operator, dead):
        page = operator.post(ONE, GIVEN | shown_place(operator.get(ONE)) | {"reason": ""})

        assert "Nothing was changed yet" in text_of(page)
        assert not BulkAction.objects.exists()

    def test_leave_what_has_failed_since_they_were_counted(self, operator, dead, polls, about, order, clock):
        """Also if it was there before, and had not failed yet."""
        failing = about(order, state=State.ACTIVE, lease_expires_at=clock.now)
        given = GIVEN | shown_place(operator.get(ONE))
        clock.advance(minutes=1)
        failed = {"state": State.DISCARDED, "finished_at": clock.now, "reason_code": "error", "fingerprint": "1" * 16}
        failed["lease_expires_at"] = None
        ScheduledTask.objects.filter(pk=failing.pk).update(**failed)
        operator.post(ONE, given)

        polls()

        assert not again().filter(previous=failing).exists()
        assert again().count() == 7

    def test_are_stopped_from_their_page_and_what_is_done_stays(self, operator, dead, polls, monkeypatch):
        monkeypatch.setattr(poll, "BATCH", 2)
        monkeypatch.setattr(poll, "A_TURN", 0)
        where = operator.post(ONE, GIVEN).headers["Location"]
        polls()

        operator.post(where)
        polls()

        assert again().count() == 2
        assert "stopped" in text_of(operator.get(where))

    def test_are_those_that_the_user_may_see_and_redrive(self, operator, dead, polls, settings):
        settings.TIMELINE = {**settings.TIMELINE, "POLICY": f"{__name__}.OfFew"}
        OfFew.seen = [row.pk for row in dead[:6]]
        OfFew.redrivable = {row.pk for row in dead[1:]}

        where = operator.post(ONE, GIVEN).headers["Location"]
        polls()

        assert set(again().values_list("previous", flat=True)) == {row.pk for row in dead[1:6]}
        assert "who asked may not do this with" in text_of(operator.get(where))

    def test_are_not_begun_by_who_may_not_redrive(self, person, browse, dead):
        viewer = browse(person("vera", "view_scheduledtask"))

        assert viewer.post(ONE, GIVEN).status_code == 403
        assert not BulkAction.objects.exists()


class TestCause:
    def test_of_many_is_a_bulk_action_that_means_all_its_kinds_and_no_other(self, operator, full, monkeypatch, clock):
        monkeypatch.setattr(dead_letters, "PORTION", 2)

        page = operator.post(where_of_cause(operator), GIVEN, follow=True)
        act_in_bulk(now=clock.now, using="default")

        assert "5555555555555555, 6666666666666666" in text_of(page)
        assert set(again().values_list("previous", flat=True)) == {row.pk for row in full}
