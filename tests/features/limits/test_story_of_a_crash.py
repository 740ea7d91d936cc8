"""A worker is killed while its task holds the only place: nobody takes it before that is known, and nobody waits for ever."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest
from django.utils import timezone

from tests.features.limits.limited import held
from tests.features.limits.narrow.timelines import NarrowCase
from tests.processes import kill, let_be_dead, wait_for
from tests.testapp.models import Order
from timeline.models import ScheduledTask, Sign
from timeline.shortcuts import schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

KILLS = 8
TASKS = 60


@pytest.fixture(autouse=True)
def known():
    with only_timelines(NarrowCase):
        yield


def all_ended():
    return not ScheduledTask.objects.open().exists()


class TestKilledHolder:
    @pytest.mark.parametrize(
        ("name", "key", "ends"),
        [
            ("alone", "narrow_case.alone", ["retryable", "completed"]),
            ("alone_to_the_end", "to_the_end", ["completed"]),
        ],
    )
    def test_has_its_place_taken_when_it_is_known_to_be_dead_or_when_it_has_ended(
        self, name, key, ends, tmp_path, workers
    ):
        at = timezone.now() - timedelta(seconds=9)
        first, second = [
            schedule(f"narrow_case.{name}", Order.objects.create(), at=at + number * timedelta(seconds=1)).task
            for number in range(2)
        ]
        victim = workers("victim")
        wait_for((tmp_path / "entered").exists, "entering the handler")
        workers("heir")
        wait_for(lambda: Sign.objects.filter(worker__startswith="heir").exists(), "a sign of the other worker")
        kill(victim)
        (tmp_path / "go").touch()
        second.refresh_from_db()
        before = (second.state, second.attempt, held(key))
        let_be_dead(worker__startswith="victim")

        wait_for(all_ended, "the end of both")
        first.refresh_from_db()
        second.refresh_from_db()
        assert before == ("available", 0, [1])
        assert (first.state, first.attempt, second.state, second.attempt) == ("completed", 2, "completed", 1)
        given_up = first.log.filter(from_state="active", to_state__in=ends).earliest("seq")
        assert second.started_at >= given_up.at
        assert held(key) == []


class TestKilledAgainAndAgain:
    def test_no_two_are_under_way_and_all_of_them_end(self, tmp_path, workers):
        """Of three workers one is killed, wherever it is, and another one comes; each note has one place."""
        at, random = timezone.now() - timedelta(minutes=1), Random(7)  # noqa: S311 (the same each time)
        for number in range(TASKS):
            order = Order.objects.create(note="ab"[number % 2])
            schedule("narrow_case.one_a_note", order, at=at + timedelta(milliseconds=number))
        alive = {name: workers(name) for name in ("w0", "w1", "w2")}
        died = {}
        for number in range(KILLS):
            wait_for(lambda least=4 * number: len(lines(tmp_path)) > least or all_ended(), "some work")
            time.sleep(random.uniform(0, 0.05))
            name = random.choice(sorted(alive))
            process = alive.pop(name)
            kill(process)
            died[process.pid] = time.time()
            let_be_dead(worker__startswith=f"{name}:")
            alive[f"w{number + 3}"] = workers(f"w{number + 3}")

        wait_for(all_ended, "the end of all")
        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"completed"}
        assert not ScheduledTask.objects.filter(slot__gt=0).exists()
        for note in "ab":
            spans = spans_of([line for line in lines(tmp_path) if line["note"] == note], died)
            assert len(spans) >= TASKS / 2
            assert all(end <= start for (_start, end), (start, _end) in pairwise(sorted(spans)))


def lines(folder):
    path = folder / "inside"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def spans_of(told, died):
    """From when until when handlers were entered: until they were left, or their process was killed."""
    spans, entered = [], {}
    for line in told:
        if line["what"] == "in":
            assert line["pid"] not in entered
            entered[line["pid"]] = line["at"]
        else:
            spans.append((entered.pop(line["pid"]), line["at"]))
    return spans + [(at, died[pid]) for pid, at in entered.items()]
