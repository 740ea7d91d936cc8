"""Runs: what the database refuses of them by itself, and the questions asked of them."""

from datetime import timedelta

import pytest

from tests.models.refusing import Refusal
from timeline.models import EntityRef, TimelineRun


class TestRuns:
    def test_are_open_once_for_each_timeline_entity_and_key(self, make_run, named):
        make_run(**named)

        with Refusal("timeline_run_one_open", r"UNIQUE.*timelinerun.key$"):
            make_run(**named)

    @pytest.mark.parametrize("other", [{"key": "b"}, {"timeline": "other"}, {"entity_id": "another"}], ids=str)
    def test_may_be_many_otherwise(self, make_run, named, other):
        make_run(**named)

        assert make_run(**named | other).pk

    def test_may_be_many_that_have_ended(self, make_run, named, now):
        for _ in range(2):
            make_run(ended_at=now, end_reason="finished", **named)

        assert make_run(**named).pk

    @pytest.mark.parametrize("end", [{"ended_at": True, "end_reason": ""}, {"ended_at": None, "end_reason": "closed"}])
    def test_have_a_reason_just_when_they_have_ended(self, make_run, now, end):
        with Refusal("timeline_run_end_has_reason"):
            make_run(ended_at=end["ended_at"] and now, end_reason=end["end_reason"])


class TestQuestions:
    def test_are_found_by_entity_and_whether_they_are_open(self, order, now):
        named = {"entity_label": "testapp.order", "entity_id": str(order.pk), "timeline": "a", "started_at": now}
        opened = TimelineRun.objects.create(**named)
        ended = TimelineRun.objects.create(**named, ended_at=now, end_reason="closed")
        system = TimelineRun.objects.create(timeline="a", started_at=now)

        assert set(TimelineRun.objects.for_entity(order)) == {opened, ended}
        assert list(TimelineRun.objects.for_entity(order).open()) == [opened]
        assert list(TimelineRun.objects.for_entity(None)) == [system]
        assert not TimelineRun.objects.for_entity(EntityRef("testapp.order", "999"))


class TestKnownSince:
    def test_is_when_it_was_recorded_though_its_times_count_from_another(self, now):
        run = TimelineRun(started_at=now - timedelta(days=60), recorded_at=now)

        assert run.known_since == now

    def test_is_its_start_where_an_earlier_version_recorded_it(self, now):
        assert TimelineRun(started_at=now).known_since == now
