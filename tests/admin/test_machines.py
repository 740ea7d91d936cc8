"""Machines on the pages of the admin: where they are, since when, and how they came there."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import ENTITY, detail, text_of
from timeline import Machine, after, never, on, task
from timeline.models import ScheduledTask
from timeline.shortcuts import emit, start
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


class Gate(Machine):
    """With titles."""

    entity = "testapp.Order"
    starts_on = "gate.made"
    initial = "shut"
    table = {"shut": {"gate.opened": "open"}, "open": {"gate.late": "broken"}, "broken": {}}
    timers = {"gate.late": on("open", days=1), ("shut",): never}
    titles = {"open": "wide open", "gate.opened": "somebody came", "gate.late": "it stood open for too long"}


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

        assert re.search(r"<strong>open</strong> since 2026-03-01 \d\d:\d\d", text)
        assert "It takes door.broken, door.shut." in text
        assert "How it came there" in text
        assert "door.opened" in text
        assert "&lt;b&gt;" in text
        assert "<b>" not in text

    def test_begins_with_where_it_is(self, operator, opened, clock):
        assert re.search(r'<strong class="tl-where">open, since \d\d:\d\d\.</strong>', page(operator, opened))

        clock.advance(days=1)

        assert re.search(r"open, since yesterday \d\d:\d\d\.</strong>", page(operator, opened))

    def test_begins_with_all_of_several_else_with_the_one_that_ended_last(self, operator, opened, clock):
        start(Lamp, opened)

        text = page(operator, opened)

        assert "door: open, since" in text
        assert "lamp: on, since" in text

        emit("door.broken", opened)
        clock.advance(hours=1)
        emit("lamp.off", opened)

        assert re.search(r'tl-where">off, since \d\d:\d\d\.</strong>', page(operator, opened))

    def test_says_states_and_events_in_words_with_their_names_beside(self, operator, order):
        with only_timelines(Gate):
            emit("gate.made", order)
            emit("gate.opened", order)

            text = page(operator, order)

        assert 'tl-where">wide open, since' in text
        assert '<strong>wide open</strong> <span class="tl-quiet tl-key">open</span>' in text
        assert '>wide open <span class="tl-quiet tl-key">open</span></td>' in text
        assert '>somebody came <span class="tl-quiet tl-key">gate.opened</span></td>' in text
        assert "It takes it stood open for too long." in text
        assert "If nothing happens: it stood open for too long, tomorrow" in text

    def test_says_that_it_has_ended(self, operator, opened):
        emit("door.broken", opened)

        text = page(operator, opened)

        assert "<strong>broken</strong> since" in text
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

        assert re.search(r"open since 2026-03-01 \d\d:\d\d", text)
        assert "Its run is open since" in text


class TestTimeline:
    def test_lists_states_and_their_table(self, operator):
        door, lamp = (
            text_of(operator.get(reverse("admin:timeline_scheduledtask_timeline", args=[name])))
            for name in ("door", "lamp")
        )

        assert "<dt>shut</dt><dd>door.opened → open</dd>" in door
        assert "<dt>off</dt><dd>an end</dd>" in lamp
