"""``timeline_apply`` of timelines that are no machines; of machines tell the stories."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.models import ScheduledTask
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
        assert called(*options) == ("Changed 5 tasks.\n", 0)

        assert due(now) == [13] * 5
        assert called("care") == ("Changed 0 tasks.\n", 0)

    def test_is_followed_in_parts(self, now):
        said, status = called("care", "--max-rows", "2")

        assert (said, status) == ("Changed 2 tasks.\nThere may be more to do: call it again.\n", 2)
        assert due(now) == [10, 10, 10, 13, 13]
        assert called("care", "--max-rows", "9") == ("Changed 3 tasks.\n", 0)

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
