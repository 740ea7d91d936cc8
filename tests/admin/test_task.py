"""The page of one task: what it tells, to whom, and what it offers."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import ALL, detail, text_of
from tests.admin.flaky import Flaky
from tests.testapp.models import Order
from timeline import Machine, never, on, task
from timeline.lifecycle import FINAL, OPEN, WAITING, ReasonCode, State
from timeline.models import LogEntry, ScheduledTask, StepRecord
from timeline.shortcuts import cancel, emit, hold, redrive, schedule, start
from timeline.testing import only_timelines


@pytest.fixture
def failed(clock, order):
    """A task whose first attempt failed."""
    with only_timelines(Flaky):
        row = schedule("flaky.work", order, at=clock.now, payload={"iban": "DE89"}).task
        clock.advance(seconds=1)
        yield row


class Room(Machine):
    """Whatever goes wrong, a person looks."""

    entity = "testapp.Order"
    initial = "works"
    table = {"works": {"unknown": "people"}, "people": {"helped": "works", "given.up": "over"}, "over": {}}
    working = ("works",)
    timers = {"people": never}
    errors = {Exception: "unknown"}

    @task(on("works"), atomic=False)
    def book(self, order):
        raise ValueError("no such room")


@pytest.fixture
def answered(clock, order):
    """A task that is completed by an error, which its machine takes as an answer."""
    with only_timelines(Room):
        start(Room, order)
        clock.advance(seconds=1)
        yield ScheduledTask.objects.get()


@pytest.mark.timeline(raises=False)
class TestWhatItTells:
    def test_when_it_is_due_on_the_sites_clocks(self, operator, about, order, settings):
        settings.TIME_ZONE = "Asia/Kolkata"

        text = text_of(operator.get(detail(about(order))))

        assert "<dd>2026-03-01 15:30</dd>" in text
        assert "Times are those of Asia/Kolkata." in text

    def test_why_it_is_there(self, operator, order):
        emit("order.placed", order, key="shop-17", actor="ada")
        text = text_of(operator.get(detail(ScheduledTask.objects.get())))

        for said in ("event order.placed", "by ada", "shop-17", "care", "It is due on 2026-03-04 09:00"):
            assert said in text

    def test_where_its_timeline_is_told_as_long_as_there_is_one(self, operator, order):
        emit("order.placed", order)
        where = detail(ScheduledTask.objects.get())
        care = f'<a href="{reverse("admin:timeline_scheduledtask_timeline", args=["care"])}">care</a>'

        assert care in text_of(operator.get(where))
        with only_timelines(Flaky):
            assert "<dd>care" in text_of(operator.get(where))

    def test_why_it_has_not_run_yet(self, operator, about, order):
        waits, late = about(order), about(order, -3)

        assert "It waits for its time" in text_of(operator.get(detail(waits)))
        assert "It is overdue: is a worker running?" in text_of(operator.get(detail(late)))
        assert "Why it has not run yet" not in text_of(operator.get(detail(about(order, state=State.COMPLETED))))

    def test_that_it_is_on_hold_by_whom_and_why(self, operator, about, order):
        late = about(order, -3)
        hold(order, reason="they dispute the bill", actor="ada")

        text = text_of(operator.get(detail(late)))

        assert "On hold since" in text
        assert "by ada: they dispute the bill. Then what is due runs." in text
        assert "is a worker running" not in text

    def test_its_attempts_its_error_its_log_and_its_data(self, operator, failed):
        text = text_of(operator.get(detail(failed)))

        for said in (
            "ValueError: IBAN DE89 is closed",
            "Traceback",
            "active → retryable",
            "<dt>iban</dt><dd>DE89</dd>",
        ):
            assert said in text

    def test_its_result_by_its_parts_and_before_what_there_is_none_of(self, operator, about, order):
        result = {"subject": "Your <trial>", "text": "one\ntwo", "sizes": [1, 2]}
        result["deep"] = {"number": 40 * "7", "of": ["a", "b"], "said": 20 * "x"}

        page = operator.get(detail(about(order, state=State.COMPLETED, result=result))).content.decode()

        assert "<dt>subject</dt><dd>Your &lt;trial&gt;</dd>" in page
        assert "<dt>text</dt><dd>one\ntwo</dd>" in page
        assert "<dt>sizes</dt><dd>[1, 2]</dd>" in page
        assert "<dt>deep</dt><dd>{\n  &quot;number&quot;: " in page
        assert page.index("<dt>Result</dt>") < page.index("<dt>Last error</dt>")

    def test_a_result_that_is_one_text_as_it_is(self, operator, about, order):
        page = text_of(operator.get(detail(about(order, state=State.COMPLETED, result="two\nlines"))))

        assert "<pre>two lines</pre>" in page

    def test_the_error_that_its_machine_took_as_an_answer(self, operator, answered):
        text = text_of(operator.get(detail(answered)))

        for said in ("ValueError: no such room", "Traceback", "which means unknown. The error was ValueError"):
            assert said in text

    def test_that_it_has_no_definition_any_more(self, operator, about, order):
        text = text_of(operator.get(detail(about(order, task_key="care.gone"))))

        assert "It has no definition any more, so that nothing runs it" in text
        assert "manage.py timeline_apply care" in text

    def test_what_came_before_and_after_it(self, operator, about, order):
        first = about(order, state=State.CANCELLED, reason="no")
        [again] = redrive(first, reason="yes", actor="eva")

        assert detail(again) in text_of(operator.get(detail(first)))
        assert detail(first) in text_of(operator.get(detail(again)))

    def test_where_those_are_that_failed_alike(self, operator, about, order):
        row = about(order, state=State.DISCARDED, fingerprint="1" * 16, error="no", reason_code="error")
        led = f'href="{reverse("admin:timeline_scheduledtask_dead")}?group={"1" * 16}">All that failed alike</a>'

        assert led in text_of(operator.get(detail(row)))
        redrive(row, reason="once more")
        assert "All that failed alike" not in text_of(operator.get(detail(row)))

    def test_who_did_what(self, operator, about, order):
        row = about(order)
        cancel(row, reason="they asked", actor="eva")

        text = text_of(operator.get(detail(row)))

        assert "they asked" in text
        assert "eva" in text
        assert "scheduled → cancelled" in text


@pytest.mark.timeline(raises=False)
class TestWhatItHides:
    def test_payload_result_and_errors_from_those_who_may_not_read_them(self, browse, person, failed):
        text = text_of(browse(person("viewer", *ALL[:-1])).get(detail(failed)))

        assert "DE89" not in text
        assert "Traceback" not in text
        assert "iban" not in text
        assert "you may not view payloads" in text

    def test_the_error_that_its_machine_took_as_an_answer(self, browse, person, answered):
        text = text_of(browse(person("mia", "view_scheduledtask")).get(detail(answered)))

        assert "which means unknown" in text
        assert "no such room" not in text

    def test_results_in_the_story(self, browse, person, operator, about, order, now):
        row = about(order, state=State.COMPLETED, result={"pin": "4711"})
        columns = {"from_state": "active", "to_state": "completed", "attempt": 1, "reason_code": "done"}
        LogEntry.objects.create(task=row, seq=1, at=now, **columns)

        assert "4711" in text_of(operator.get(detail(row)))
        assert "4711" not in text_of(browse(person("viewer", "view_scheduledtask")).get(detail(row)))


class TestWhoSees:
    def test_a_task_one_may_not_see_is_as_one_that_is_not_there(self, browse, person, about):
        hidden = about(person("ada"), task_key="account.welcome")
        client = browse(person("staff", is_staff=True))

        missing = client.get(reverse("admin:timeline_scheduledtask_change", args=[uuid.uuid4()]))
        answer = client.get(detail(hidden))

        assert (answer.status_code, answer.content) == (missing.status_code, missing.content)
        assert answer.status_code == 404

    def test_needs_staff(self, browse, person, about):
        ada = person("ada")

        assert browse(ada).get(detail(about(ada, task_key="account.welcome"))).status_code == 302


class TestWhatItOffers:
    @pytest.mark.parametrize("state", State)
    def test_is_what_the_state_lets_happen(self, operator, about, order, state):
        offered = operator.get(detail(about(order, state=state))).context["actions"]

        states = {"cancel": OPEN, "move": OPEN, "run_now": WAITING, "redrive": FINAL}
        assert [str(action) for action, _verb in offered] == [name for name, among in states.items() if state in among]

    def test_is_nothing_without_permission(self, browse, person, about, order):
        response = browse(person("viewer", "view_scheduledtask")).get(detail(about(order)))

        assert response.context["actions"] == []
        assert "timeline_scheduledtask_act" not in text_of(response)


class TestLongLog:
    @pytest.fixture
    def worn(self, make_task, order, now):
        row = make_task(
            task_key="care.call", entity_label="testapp.order", entity_id=str(order.pk), state=State.RETRYABLE, seq=1000
        )
        LogEntry.objects.bulk_create(
            LogEntry(
                task=row, seq=seq, at=now + timedelta(seconds=seq), attempt=seq // 2, from_state=a, to_state=b,
                detail={"error": {"class": "ValueError", "message": f"no. {seq}", "traceback": ""}} if seq % 2 else {},
            )
            for seq in range(1, 1001)
            for a, b in [("active", "retryable") if seq % 2 else ("available", "active")]
        )  # fmt: skip
        return row

    def test_is_shown_in_parts_each_with_a_link_to_the_one_before(self, operator, worn):
        page = text_of(operator.get(detail(worn)))

        assert "Log: 1000 entries" in page
        assert "Entries 801 to 1000 are shown." in page
        assert '<a href="?before=801#log">Show earlier ones, 800 of them</a>' in page

        page = text_of(operator.get(detail(worn), {"before": "801"}))

        assert "Log: 1000 entries" in page
        assert "Entries 601 to 800 are shown." in page
        assert "As far as entry 800 of the log." in page
        assert "no. 799" in page
        assert "no. 801" not in page

        page = text_of(operator.get(detail(worn), {"before": "101"}))

        assert "Entries 1 to 100 are shown." in page
        assert "Show earlier" not in page

    @pytest.mark.parametrize("before", ["no", "-1", "9" * 30, "\u0661"])
    def test_shows_the_latest_if_the_place_is_none(self, operator, worn, before):
        assert "Entries 801 to 1000 are shown." in text_of(operator.get(detail(worn), {"before": before}))


class TestQueries:
    def test_are_as_many_for_a_long_log_as_for_a_short_one(self, operator, make_task, now):
        counts = []
        for number in (1, 300):
            order = Order.objects.create()
            row = make_task(task_key="care.call", entity_label="testapp.order", entity_id=str(order.pk))
            LogEntry.objects.bulk_create(
                LogEntry(task=row, seq=seq, at=now + timedelta(seconds=seq), from_state=a, to_state=b, attempt=seq // 2)
                for seq in range(1, number * 2)
                for a, b in [("scheduled", "active") if seq % 2 else ("active", "retryable")]
            )
            with CaptureQueriesContext(connection) as queries:
                assert operator.get(detail(row)).status_code == 200
            counts.append(len(queries))

        assert counts[0] == counts[1] <= 12  # Session and user of the request, and what they may, are four of them.

    def test_are_few_for_one_that_rests_on_hold_with_steps_and_many_revisions(
        self, operator, make_task, order, now, django_assert_max_num_queries
    ):
        about = {"task_key": "care.call", "entity_label": "testapp.order", "entity_id": str(order.pk)}
        row = None
        for revision in range(1, 9):
            state = State.DISCARDED if revision < 8 else State.RETRYABLE
            row = make_task(
                **about, revision=revision, previous=row, state=state, attempt=1, reason_code=ReasonCode.IN_DOUBT
            )
        StepRecord.objects.create(
            origin=ScheduledTask.objects.earliest("revision").pk, name="pay", task_id=row.pk, attempt=1, kind="begun",
            recorded_at=now, seconds=0,
        )  # fmt: skip
        hold(order, reason="so")

        with django_assert_max_num_queries(12):
            page = text_of(operator.get(detail(row)))

        assert "On hold since" in page
        assert "pay" in page

    def test_are_few_even_for_one_on_hold(self, operator, about, order, django_assert_max_num_queries):
        """Four of these say who asks, and what they may do."""
        row = about(order)
        hold(order, reason="so")

        with django_assert_max_num_queries(11):
            assert "On hold since" in text_of(operator.get(detail(row)))
