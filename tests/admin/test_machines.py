"""Machines on the pages of the admin: where they are, since when, and how they came there."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import ENTITY, detail, text_of
from timeline import Machine, after, task
from timeline.models import ScheduledTask
from timeline.shortcuts import emit
from timeline.testing import only_timelines


class Door(Machine):
    """Opened and shut."""

    entity = "testapp.Order"
    starts_on = "door.made"
    initial = "shut"
    table = {"shut": {"door.opened": "open"}, "open": {"door.shut": "shut", "door.broken": "broken"}, "broken": {}}

    @task(after(days=5))
    def oil(self, order): ...


class Lamp(Machine):
    """Has no task."""

    entity = "testapp.Order"
    initial = "on"
    table = {"on": {"lamp.off": "off"}, "off": {}}


@pytest.fixture(autouse=True)
def _door(clock):
    with only_timelines(Door, Lamp):
        yield


@pytest.fixture
def opened(order):
    emit("door.made", order, actor="ada")
    emit("door.opened", order, actor="<b>")
    return order


def page(client, entity):
    return text_of(client.get(ENTITY, {"label": entity._meta.label_lower, "id": entity.pk}))


class TestEntity:
    def test_says_the_state_since_when_and_how_it_came_there(self, operator, opened, clock):
        text = page(operator, opened)

        assert re.search(r"state: open since 2026-03-01 \d\d:\d\d", text)
        assert "It takes door.broken, door.shut." in text
        assert "How it came there" in text
        assert "door.opened" in text
        assert "&lt;b&gt;" in text
        assert "<b>" not in text

    def test_says_that_it_has_ended(self, operator, opened):
        emit("door.broken", opened)

        text = page(operator, opened)

        assert "state: broken since" in text
        assert "It takes" not in text

    def test_asks_as_often_for_twenty_tasks_as_for_one(self, operator, opened, about):
        page(operator, opened)  # What Django remembers from then on, such as content types, is not counted.
        counts = []
        for number in (1, 20):
            for hours in range(number):
                about(opened, hours, task_key="door.oil")
            with CaptureQueriesContext(connection) as queries:
                page(operator, opened)
            counts.append(len(queries))

        assert counts[0] == counts[1] <= 12

    def test_says_nothing_where_there_is_no_machine(self, operator, order):
        assert "state:" not in page(operator, order)


class TestTask:
    def test_says_the_state_of_its_run(self, operator, opened):
        text = text_of(operator.get(detail(ScheduledTask.objects.get())))

        assert re.search(r"state: open since 2026-03-01 \d\d:\d\d", text)
        assert "Its run is open since" in text


class TestTimeline:
    def test_lists_states_and_their_table(self, operator):
        door, lamp = (
            text_of(operator.get(reverse("admin:timeline_scheduledtask_timeline", args=[name])))
            for name in ("door", "lamp")
        )

        assert "<dt>shut</dt><dd>door.opened → open</dd>" in door
        assert "<dt>off</dt><dd>an end</dd>" in lamp
