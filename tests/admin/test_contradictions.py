"""
No two faces contradict each other: over random worlds, the health page, the bar, Needs attention, the list, the page of people,
dead letters, the doctor, the API and the metrics say the same numbers as counting row by row.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from project.accounts.models import User
from tests.admin.conftest import LIST, text_of
from tests.admin.test_attention import ATTENTION, DEAD, PEOPLE, titles, waits_in_the_bar
from tests.admin.test_health import HEALTH
from tests.admin.test_people import Complaint
from tests.admin.test_people_deciding import Paying, Refunding
from tests.rows import NOW
from tests.testapp.models import Order
from timeline import (
    Limit,  # of limits
    Retry,
    Timeline,
    after,
    task,
)
from timeline.conf import get_settings
from timeline.exceptions import TimelineError
from timeline.features.holds.store import holds_over
from timeline.lifecycle import OPEN, State
from timeline.models import Event, Hold, ScheduledTask, TimelineRun
from timeline.reading.diagnosis import diagnose
from timeline.reading.machinery import measure
from timeline.registry import registry
from timeline.shortcuts import cancel, emit, hold, move, redrive, release
from timeline.store.site import sign_of_poller
from timeline.testing import StoryClock, only_timelines
from timeline.webhooks.models import Endpoint

EXAMPLES = int(os.environ.get("STATEFUL_EXAMPLES", "5"))
STEPS = int(os.environ.get("STATEFUL_STEPS", "15"))
LARGE = "STATEFUL_EXAMPLES" in os.environ
WAITING = {"scheduled", "retryable"}
SAID = [
    "bill.sent",
    "order.placed",
    "complaint.made",
    "complaint.settled",
    "complaint.parked",
    "refund.asked",
    "refund.approved",
]


class Sending(Timeline):
    """Fails, each time in the same way, and closes its limit."""

    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(hours=1), retry=Retry(max_attempts=2))
    def send(self, order):
        raise ValueError("no mail server")

    @task(after(hours=2), limit=Limit(1, "desk", until="end"), atomic=False, retry=Retry(max_attempts=1))  # of limits
    def file(self, order):
        raise ValueError("no room")

    @task(after(days=3))
    def thank(self, order): ...


KNOWN = (Complaint, Refunding, Paying, Sending)
KINDS = {"dead_letters", "people", "in_doubt", "holds", "endpoints", "overdue"}
KINDS |= {"closed"}  # of limits
SEEN: Counter[str] = Counter()
which = st.integers(min_value=0, max_value=1000)


class Truth:
    """What there is, counted row by row, as nobody who has many rows could."""

    def __init__(self, now):
        self.now, self.rows = now, list(ScheduledTask.objects.select_related("run"))
        self.followed = {row.previous_id for row in self.rows}

    def waiting(self):
        """As ``Waiting`` has it."""
        return {
            "dead_letters": len(self.dead()),
            "people": len(self.machines()) + len(self.approvals()),
            "in_doubt": self.resting("in_doubt"),
            "changed": self.resting("definition"),
            "closed": sum(row.slot > 0 and row.state not in OPEN for row in self.rows),
            "holds": sum(each.until is None and each.released_at is None for each in Hold.objects.all()),
            "endpoints": sum(
                (each.disabled_at is None and each.failures >= 5) or each.disabled_code in ("gone", "failing")
                for each in Endpoint.objects.all()
            ),
        }

    def dead(self):
        return [row for row in self.rows if row.state == State.DISCARDED and row.pk not in self.followed]

    def machines(self):
        runs = [run for run in TimelineRun.objects.all() if run.ended_at is None and run.timeline == "complaint"]
        return [run for run in runs if run.state == "open"]

    def approvals(self):
        asked = [row for row in self.rows if row.task_key == "refunding.refund" and row.state in WAITING]
        asked = [row for row in asked if row.attempt == 0 and min(row.nominal_at, row.scheduled_at) > self.now]
        return [row for row in asked if not self.is_decided(row)]

    def is_decided(self, row):
        said = Event.objects.filter(name__in=["refund.approved", "refund.rejected"], entity_id=row.entity_id)
        return any(row.run.recorded_at <= event.recorded_at < row.nominal_at for event in said)

    def resting(self, code):
        return sum(row.state == State.RETRYABLE and row.reason_code == code for row in self.rows)

    def overdue(self):
        """Due for longer than two polls, known, and not on hold; it waits for no place of a limit."""
        late = self.now - get_settings().overdue_after
        found = [row for row in self.rows if row.state in OPEN - {State.ACTIVE} and row.scheduled_at <= late]
        found = [row for row in found if row.task_key in registry.task_keys()]
        found = [row for row in found if not (row.state == State.AVAILABLE and row.limit_key and not row.slot)]
        held = holds_over(found, using="default")
        return [row for row in found if row.pk not in held]


class Worlds(RuleBasedStateMachine):
    """People, time, failures and holds, in any order; after each step all faces are asked."""

    def __init__(self):
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic._from_testcase = True  # As that of a test: handlers without a transaction are entered within it.
        self.atomic.__enter__()
        self.clock, self.known = StoryClock(NOW, raises=False, only=KNOWN), only_timelines(*KNOWN)
        self.known.__enter__()
        self.clock.__enter__()
        self.orders = [Order.objects.create() for _ in range(3)]
        given = {"signed_up_at": NOW, "trial_ends_at": NOW, "is_staff": True, "is_superuser": True}
        self.client = Client()
        self.client.force_login(User.objects.create(email="boss@example.com", **given))

    def teardown(self):
        self.clock.__exit__(None, None, None)
        self.known.__exit__(None, None, None)
        transaction.set_rollback(True)
        self.atomic.__exit__(None, None, None)

    @initialize()
    def begin(self):
        emit("order.placed", self.orders[0])
        emit("complaint.made", self.orders[1])
        emit("refund.asked", self.orders[2])
        emit("bill.sent", self.orders[0])
        with self.clock.failing():
            self.clock.run_due()

    @rule(number=which, event=st.sampled_from(SAID))
    def say(self, number, event):
        emit(event, self.orders[number % 3])

    @rule(hours=st.integers(min_value=1, max_value=30))
    def time_passes_and_all_is_run(self, hours):
        with self.clock.failing():
            self.clock.advance(hours=hours)

    @rule(hours=st.integers(min_value=1, max_value=5))
    def time_passes_and_nobody_runs_anything(self, hours):
        self.clock.set(self.clock.now + timedelta(hours=hours))

    @rule(number=which, whole=st.sampled_from(["entity", "timeline", "task", "everything"]), ends=st.booleans())
    def put_on_hold(self, number, whole, ends):
        given = {
            "entity": {"entity": self.orders[number % 3]},
            "timeline": {"timeline": "sending"},
            "task": {"task": "sending.send"},
            "everything": {"everything": True},
        }[whole]
        hold(**given, reason="x", until=self.clock.now + timedelta(days=1) if ends else None)

    @rule(number=which)
    def let_go(self, number):
        if there := list(Hold.objects.open().order_by("pk")):
            release(there[number % len(there)], reason="y")

    @rule(number=which, act=st.sampled_from([redrive, cancel, move]))
    def decide(self, number, act):
        rows = list(ScheduledTask.objects.order_by("pk"))
        if rows:
            given = {"at": self.clock.now + timedelta(days=2)} if act is move else {}
            with suppress(TimelineError):  # Not with this one.
                act(rows[number % len(rows)], reason="z", **given)

    @rule(fails=st.booleans())
    def an_endpoint_fails(self, fails):
        failures = 7 if fails else 1
        Endpoint.objects.create(url="https://a.example/x", topics=[], created_at=NOW, failures=failures)

    @invariant()
    def nobody_contradicts(self):
        sign_of_poller(using="default")
        truth = Truth(self.clock.now)
        waiting, overdue = truth.waiting(), len(truth.overdue())
        SEEN.update({**waiting, "overdue": overdue})
        health = diagnose(now=self.clock.now, using="default")
        assert (health.waiting.as_data(), health.overdue) == (waiting, overdue)
        measured = measure(now=self.clock.now, using="default")
        assert (measured.waiting.as_data(), measured.overdue) == (waiting, overdue)
        assert self.told_by_doctor() == (waiting, overdue)
        self.look_at_pages(truth, waiting, overdue)

    def told_by_doctor(self):
        said = StringIO()
        with suppress(SystemExit):
            call_command("timeline_doctor", "--json", "--database", "default", stdout=said)
        [found] = json.loads(said.getvalue())
        return found["waiting"], found["overdue"]

    def look_at_pages(self, truth, waiting, overdue):
        total = sum(waiting.values())
        attention, health = text_of(self.client.get(ATTENTION)), text_of(self.client.get(HEALTH))
        people, dead = text_of(self.client.get(PEOPLE)), text_of(self.client.get(DEAD))
        for page in (attention, health, people, dead):
            assert waits_in_the_bar(page) == str(total)
        found = titles(attention)
        assert int(found.get("Waiting for people", 0)) == waiting["people"]
        assert int(found.get("Overdue", 0)) == overdue
        assert int(found.get("Failed for good", 0)) == waiting["dead_letters"]
        assert int(found.get("Steps in doubt", 0)) == waiting["in_doubt"]
        assert int(found.get("Closed limits", 0)) == waiting["closed"]
        assert ("and nothing waits for you" in health) is (total == overdue == 0 and "tl-fine" in health)
        assert len(re.findall(r'<td class="tl-long tl-who">', people)) == waiting["people"]
        assert sum(each["count"] for each in self.client.get("/api/v1/dead-letters/").json()) == waiting["dead_letters"]
        listed = text_of(self.client.get(LIST, {"state": "overdue"}))
        assert listed.count(">overdue</span>") == overdue


@pytest.mark.django_db
class TestWorlds:
    def test_are_told_alike_by_all(self):
        given = settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=not LARGE,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink] if LARGE else [Phase.generate],
            report_multiple_bugs=False,
        )
        run_state_machine_as_test(Worlds, settings=given)
        assert {kind for kind, number in SEEN.items() if number} == KINDS  # Else it has compared nothing with nothing.
