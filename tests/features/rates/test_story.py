"""Two workers share a rate, and are killed: in no second do more begin than are allowed, and all end."""

from __future__ import annotations

import json
from datetime import timedelta
from random import Random

import pytest
from django.utils import timezone

from tests.features.rates.paced.timelines import PacedCase
from tests.features.rates.test_store import most_within
from tests.processes import all_ended, kill_in_turn, wait_for
from tests.testapp.models import Order
from timeline.models import LogEntry, RateKey, ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

KINDS = ("call", "call_async", "call_atomic")
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def known():
    with only_timelines(PacedCase):
        yield


def make(name, number):
    at = timezone.now() - timedelta(minutes=1)
    for place in range(number):
        schedule(f"paced_case.{name}", Order.objects.create(), at=at + timedelta(milliseconds=place))


def entered(folder):
    path = folder / "entered"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class TestTwoWorkersThatAreKilled:
    def test_keep_the_rate_and_do_all(self, tmp_path, workers):
        for name in KINDS:
            make(name, 16)

        kill_in_turn(workers, kills=6, each=4, random=Random(11))  # noqa: S311 (the same each time)

        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"completed"}
        lines = entered(tmp_path)
        assert {
            name: len({line["order"] for line in lines if line["name"] == name}) for name in KINDS
        } == dict.fromkeys(KINDS, 16)
        # An attempt is counted up to a group's 50 ms before its handler is entered: a window that much shorter is exact.
        assert most_within([line["at"] for line in lines], 0.7) <= 6
        assert most_within([line["at"] for line in lines], 2.0) > 6  # It can be seen if it is not kept.

    def test_is_exact_by_what_the_database_counted(self, workers):
        """Each start that is counted is of an attempt; what is put off is not counted."""
        make("call", 24)
        for name in ("one", "two"):
            workers(name)

        wait_for(all_ended, "the end of all")
        put_off = LogEntry.objects.filter(from_state="active", reason_code="waiting").count()
        attempts = sum(ScheduledTask.objects.values_list("attempt", flat=True))
        assert attempts - put_off == 24
        began = ScheduledTask.objects.order_by("started_at").values_list("started_at", flat=True)
        assert began.last() - began.first() >= 2 * SECOND
        assert RateKey.objects.get().key == "outside"


class TestOneWorkerIsToldToWait:
    def test_and_the_other_waits_too(self, tmp_path, workers):
        make("refused_once", 40)
        for name in ("one", "two"):
            workers(name)

        wait_for(all_ended, "the end of all")
        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"completed"}
        lines = sorted(entered(tmp_path), key=lambda line: line["at"])
        told = LogEntry.objects.get(detail__rate_limited=1).at.timestamp()
        # What the other worker has counted by then is entered within its group.
        quiet = [line for line in lines if told + 0.5 < line["at"] < told + 3.5]
        behind = [line for line in lines if line["at"] >= told + 3.5]
        assert quiet == []
        assert behind
        assert len({line["order"] for line in lines}) == 40
