"""``timeline_apply`` of timelines that are no machines; of machines tell the stories."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import start
from timeline.testing import only_timelines


class Before(Timeline):
    name = "care"
    entity = "testapp.Order"

    @task(after(days=10))
    def remind(self, order): ...


class Now(Timeline):
    name = "care"
    entity = "testapp.Order"

    @task(after(days=13))
    def remind(self, order): ...


@pytest.fixture(autouse=True)
def _five(db, clock, now):
    clock.set(now)
    with only_timelines(Before):
        for _ in range(5):
            start(Before, Order.objects.create())
    with only_timelines(Now):
        yield


def called(*options):
    """What it printed, and its exit status."""
    out = StringIO()
    try:
        call_command("timeline_apply", *options, stdout=out)
    except SystemExit as ended:
        return out.getvalue(), ended.code
    return out.getvalue(), 0


def due(now):
    return sorted((row.scheduled_at - now).days for row in ScheduledTask.objects.all())


class TestATimeline:
    @pytest.mark.parametrize("options", [(), ("care",)])
    def test_is_followed(self, options, now):
        assert called(*options) == ("Tasks changed: 5.\n", 0)

        assert due(now) == [13] * 5
        assert called("care") == ("Tasks changed: 0.\n", 0)

    def test_is_followed_in_parts(self, now):
        said, status = called("care", "--max-rows", "2")

        assert (said, status) == ("Tasks changed: 2.\nThere may be more to do: call it again.\n", 2)
        assert due(now) == [10, 10, 10, 13, 13]
        assert called("care", "--max-rows", "9") == ("Tasks changed: 3.\n", 0)

    def test_is_followed_but_for_what_is_kept(self, now):
        called("care", "--keep", "remind", "--reason", "told them", "--actor", "ada")

        assert due(now) == [10] * 5
        assert {row.log.latest("seq").actor for row in ScheduledTask.objects.all()} == {"ada"}

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--keep", "remind"), "Name the timeline whose tasks you mean"),
            (("care", "--cancel", "remind"), "reason"),
            (("care", "--keep", "call", "--reason", "x"), "'care.call' is not registered"),
            (("care", "--rename", "A=B"), "care"),
            (("care", "--max-rows", "0"), "give a whole number, 1 at least"),
            (("cure",), "cure"),
        ],
    )
    def test_is_left_alone_where_the_command_is_wrong(self, options, said, now):
        with pytest.raises(CommandError, match=said):
            called(*options)

        assert due(now) == [10] * 5


class TestWhatHasNoDefinition:
    @pytest.fixture
    def _without(self):
        class Other(Timeline):
            name = "other"

            @task()
            def go(self): ...

        with only_timelines(Other):
            yield

    @pytest.mark.usefixtures("_without")
    def test_is_cancelled_if_its_timeline_is_named(self):
        assert called("care", "--actor", "ada") == ("Tasks changed: 5.\n", 0)

        assert {(row.state, row.reason_code, row.reason, row.actor) for row in ScheduledTask.objects.all()} == {
            ("cancelled", "definition", "care has no definition any more", "ada")
        }
        assert {(run.end_code, run.end_reason) for run in TimelineRun.objects.all()} == {
            ("left", "care has no definition any more")
        }

    @pytest.mark.usefixtures("_without")
    def test_rests_if_its_timeline_is_not_named(self):
        called()

        assert ScheduledTask.objects.open().count() == 5

    @pytest.mark.usefixtures("_without")
    def test_is_cancelled_a_part_at_a_time(self):
        assert called("care", "--max-rows", "2")[1] == 2
        assert ScheduledTask.objects.open().count() == 3

        assert called("care", "--max-rows", "9") == ("Tasks changed: 3.\n", 0)

    @pytest.mark.parametrize("option", ["--keep", "--cancel", "--end"])
    @pytest.mark.usefixtures("_without")
    def test_cannot_be_kept(self, option):
        with pytest.raises(CommandError, match="The code does not have care any more"):
            called("care", option, "remind", "--reason", "so")

        assert ScheduledTask.objects.open().count() == 5

    def test_of_a_known_timeline_is_cancelled_with_the_name_of_who_did_it(self, make_task):
        make_task(task_key="care.gone")
        run = TimelineRun.objects.first()
        make_task(task_key="care.dropped", run=run, entity_label=run.entity_label, entity_id=run.entity_id)

        assert called("care", "--actor", "ada") == ("Tasks changed: 7.\n", 0)

        found = ScheduledTask.objects.filter(state="cancelled").order_by("task_key")
        assert [(row.task_key, row.reason_code, row.actor) for row in found] == [
            ("care.dropped", "definition", "ada"),
            ("care.gone", "definition", "ada"),
        ]

    @pytest.mark.usefixtures("_without")
    def test_may_be_about_a_model_that_is_not_installed(self, make_task):
        TimelineRun.objects.update(entity_label="gone.model")
        ScheduledTask.objects.update(entity_label="gone.model")
        make_task(task_key="care.late", entity_label="gone.model", entity_id="7")

        assert called("care") == ("Tasks changed: 6.\n", 0)

    @pytest.mark.usefixtures("_without")
    def test_is_no_timeline_of_which_nothing_is_open(self):
        called("care")

        with pytest.raises(CommandError, match="'care' is not registered"):
            called("care")
