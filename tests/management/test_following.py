"""A line for each task that a worker has ended, or failed: ``timeline_worker -v 2``."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from tests.testapp.models import Order
from timeline import Discard, Timeline, after, task
from timeline.lifecycle import Reason
from timeline.management.shared import telling_tasks
from timeline.models import ref_of
from timeline.operations.cancel import cancel_all
from timeline.shortcuts import schedule
from timeline.testing import only_timelines
from timeline.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)


def is_gone(order):
    return order.note == "gone"


class Parcels(Timeline):
    entity = "testapp.Order"

    @task(after(days=1), unless=is_gone)
    def send(self, order):
        if order.note in ("lost", "late"):
            raise Discard("nobody has it") if order.note == "lost" else OSError("busy")


class Nightly(Timeline):
    @task(atomic=False)
    def sweep(self): ...


@pytest.fixture
def due():
    with only_timelines(Parcels, Nightly):

        def make(note="", key="parcels.send"):
            entity = None if key == "nightly.sweep" else Order.objects.create(note=note)
            schedule(key, entity, at=timezone.now() - timedelta(seconds=1))
            return entity

        yield make


def told_of_a_poll():
    lines = []
    with telling_tasks(lines.append):
        Worker("default").poll()
    return "\n".join(lines).splitlines()


class TestTellingTasks:
    @pytest.mark.parametrize(
        ("note", "outcome"),
        [
            ("", r"completed  \d+ ms"),
            ("lost", r"discarded \(handler\)  \d+ ms"),
            ("late", r"retryable \(error\)  \d+ ms"),
            ("gone", r"cancelled \(guard\)"),
        ],
    )
    def test_is_a_line_for_each_outcome(self, due, note, outcome):
        order = due(note)

        [line] = told_of_a_poll()

        assert re.fullmatch(rf"parcels\.send  testapp\.order {order.pk}  {outcome}", line)

    def test_names_no_entity_where_there_is_none(self, due):
        due(key="nightly.sweep")

        [line] = told_of_a_poll()

        assert re.fullmatch(r"nightly\.sweep  -  completed  \d+ ms", line)

    def test_is_a_line_for_each_task(self, due):
        for _number in range(3):
            due()

        assert len(told_of_a_poll()) == 3

    def test_says_how_long_it_took_of_attempts_only(self, due):
        order = due()
        lines = []

        with telling_tasks(lines.append):
            cancel_all(ref=ref_of(order), reason=Reason.operator("x"), using="default")

        assert lines == [f"parcels.send  testapp.order {order.pk}  cancelled (operator)"]

    def test_ends_with_the_block(self, due):
        due()
        lines = []
        with telling_tasks(lines.append):
            pass

        Worker("default").poll()

        assert lines == []


class TestWorkerCommand:
    @pytest.mark.parametrize(("verbosity", "count"), [(1, 0), (2, 1)])
    def test_tells_them_from_verbosity_2_on(self, due, monkeypatch, verbosity, count):
        due()
        monkeypatch.setattr(Worker, "work", Worker.poll)
        out = StringIO()

        call_command("timeline_worker", verbosity=verbosity, stdout=out)

        assert out.getvalue().count("parcels.send  ") == count
        assert "Tasks run: 1." in out.getvalue()
