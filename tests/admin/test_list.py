"""The list of upcoming events: bands, filters, search, the strip; who sees it; what it costs."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import product

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import ALL, ENTITY, LIST, detail, text_of
from tests.asking import sample
from tests.testapp.models import Order
from timeline.admin import task_list
from timeline.admin.references import REASONS, state_of, state_titles
from timeline.lifecycle import FINAL, OPEN, ReasonCode, State
from timeline.models import LogEntry, ScheduledTask
from timeline.shortcuts import emit, hold, leave, start

FIND = reverse("admin:timeline_scheduledtask_find")

NAMES = ["q", "timeline", "task", "kind", "day", "after", "before", "state", "part", "label", "id"]
NULS = ["\x00", "17\x00", "care\x00", "2026-03-01\x00", "2026-03-01T00:00+00:00_\x00"]


def shown(response):
    """Ids of the tasks on a page, in order."""
    return [row.task.pk for band in response.context["bands"] for row in band.rows]


def offered(client, **given):
    return [str(action) for action, _verb in client.get(LIST, given).context["actions"]]


def strip(response):
    return {day.day.isoformat(): day for day in response.context["strip"]}


class TestBands:
    def test_have_the_overdue_on_top_and_then_by_day(self, operator, about, order):
        """1 March 2026 is a Sunday, the first day of an English week."""
        hours = {"later": 24 * 8, "week": 24 * 3, "tomorrow": 24, "today": 5, "overdue": -30}
        rows = {name: about(order, at) for name, at in hours.items()}
        rows["now"] = about(order, -40, state=State.ACTIVE)

        bands = operator.get(LIST).context["bands"]

        assert [(band.name, [row.task for row in band.rows]) for band in bands] == [
            (name, [rows[name]]) for name in ("overdue", "now", "today", "tomorrow", "week", "later")
        ]

    def test_go_by_days_of_the_sites_zone(self, operator, about, order, settings):
        """23:30 UTC is tomorrow in Berlin; so is the day of the strip."""
        settings.TIME_ZONE = "Europe/Berlin"
        about(order, 14.5)

        response = operator.get(LIST)

        assert [band.name for band in response.context["bands"]] == ["tomorrow"]
        assert strip(response)["2026-03-02"].due == 1
        assert "00:30" in text_of(response)

    def test_say_when_there_is_nothing(self, operator):
        assert "Nothing is ahead." in text_of(operator.get(LIST))
        assert "No task is like that." in text_of(operator.get(LIST, {"q": "17"}))

    def test_says_where_names_are_found(self, operator):
        page = text_of(operator.get(LIST, {"q": "ada <b>"}))

        assert f'<a href="{FIND}?words=ada%20%3Cb%3E">Find “ada &lt;b&gt;” by name or email</a>' in page


class TestRows:
    @pytest.mark.parametrize(
        ("hours", "columns", "said"),
        [
            (0, {}, "due just now"),
            (-3, {}, "due 3 hours ago"),
            (0.01, {}, "in less than a minute"),
            (3, {}, "in 3 hours"),
            (24 * 10, {}, "in 1 week, 3 days"),
            (-30, {"state": State.CANCELLED}, "ended just now"),
            (5, {"state": State.COMPLETED, "finished": 2}, "ended 2 hours ago"),
        ],
    )
    def test_say_how_far_from_now_they_are(self, operator, about, order, clock, hours, columns, said):
        ago = timedelta(hours=columns.pop("finished", 0))
        about(order, hours, **columns, **({"finished_at": clock.now - ago} if columns else {}))

        [row] = operator.get(LIST, {"state": "all"}).context["bands"][0].rows

        assert row.span.replace("\xa0", " ") == said


class TestFilters:
    def test_show_what_is_open_by_themselves(self, operator, about, order):
        rows = {state: about(order, state=state).pk for state in State}

        assert set(shown(operator.get(LIST))) == {rows[state] for state in OPEN}

    @pytest.mark.parametrize("state", State)
    def test_take_a_state(self, operator, about, order, state):
        rows = {state: about(order, state=state).pk for state in State}

        assert shown(operator.get(LIST, {"state": state})) == [rows[state]]

    @pytest.mark.parametrize(("state", "states"), [("ended", FINAL), ("all", set(State)), ("nonsense", OPEN)])
    def test_take_several_states(self, operator, about, order, state, states):
        rows = {state: about(order, state=state).pk for state in State}

        assert set(shown(operator.get(LIST, {"state": state}))) == {rows[state] for state in states}

    def test_take_the_overdue(self, operator, about, order):
        late = about(order, -1)
        about(order, -1, state=State.ACTIVE)
        about(order, 1)

        assert shown(operator.get(LIST, {"state": "overdue"})) == [late.pk]

    def test_say_of_what_is_due_whether_it_is_on_hold(self, operator, about, order, django_assert_num_queries):
        about(order, -1)
        free = text_of(operator.get(LIST))
        with CaptureQueriesContext(connection) as queries:
            operator.get(LIST)
        hold(order, reason="a dispute")

        with django_assert_num_queries(len(queries)):
            held = text_of(operator.get(LIST))

        assert (free.count(">overdue</span>"), free.count(">on hold</span>")) == (1, 0)
        assert (held.count(">overdue</span>"), held.count(">on hold</span>")) == (0, 1)

    def test_take_timeline_task_kind_and_day(self, operator, about, order, user):
        call = about(order, 1)
        greet = about(order, 30, task_key="care.greet")
        welcome = about(user, 30, task_key="account.welcome")

        def asked(**given):
            return shown(operator.get(LIST, given))

        assert asked(timeline="care") == [call.pk, greet.pk]
        assert asked(task="care.greet") == [greet.pk]
        assert asked(kind="accounts.user") == [welcome.pk]
        assert asked(day="2026-03-02") == sorted([greet.pk, welcome.pk])
        assert asked(day="2026-03-02", timeline="care") == [greet.pk]
        assert asked(day="some day", kind="no.model") == []

    def test_take_a_reason_and_a_time_of_the_end(self, operator, about, order, now):
        lately = about(order, state=State.CANCELLED, reason_code="exit", finished_at=now - timedelta(days=6))
        today = about(order, 2, state=State.CANCELLED, reason_code="guard", finished_at=now - timedelta(hours=6))
        about(order, state=State.CANCELLED, reason_code="exit", finished_at=now - timedelta(days=8))

        def asked(**given):
            return shown(operator.get(LIST, {"state": "cancelled", **given}))

        assert asked(reason="guard") == [today.pk]
        assert asked(reason="exit", ended="week") == [lately.pk]
        assert asked(ended="week") == [today.pk, lately.pk]
        assert asked(ended="day") == [today.pk]
        assert len(asked(ended="some time", reason="some reason")) == 3

    def test_of_reason_and_end_are_told_and_kept(self, operator, about, order):
        response = operator.get(LIST, {"state": "cancelled", "reason": "exit", "ended": "week"})

        chips = {chip.name: (chip.value, chip.without) for chip in response.context["chips"]}
        assert chips["Reason"] == ("an exit ended its run", "?state=cancelled&ended=week")
        assert chips["Ended"] == ("in the last 7 days", "?state=cancelled&reason=exit")
        assert '<option value="exit" selected>an exit ended its run</option>' in text_of(response)
        assert '<input type="hidden" name="ended" value="week">' in text_of(response)

    def test_can_be_taken_away_one_by_one(self, operator, about, order):
        response = operator.get(LIST, {"timeline": "care", "state": "completed", "q": "1", "day": "2026-03-02"})

        without = {chip.name: chip.without for chip in response.context["chips"]}
        assert without["Day"] == "?state=completed&timeline=care&q=1"
        assert set(without) == {"Day", "State", "Timeline", "Search"}

    def test_leave_out_what_makes_no_sense(self, operator, about, order):
        row = about(order)
        nonsense = {"after": "yesterday", "before": "2026-03-01T00:00_x", "day": "0001-01-01", "state": "\x00"}

        assert shown(operator.get(LIST, nonsense)) == [row.pk]
        for at in ("0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "2026-03-01T00:00"):
            assert shown(operator.get(LIST, {"after": f"{at}_{row.pk}"})) == [row.pk]
        assert operator.get(LIST, {"q": "\x00", "timeline": "x" * 5000}).status_code == 200


class TestWords:
    def test_say_each_reason_and_state(self):
        assert set(REASONS) == set(ReasonCode)
        assert set(state_titles()) == set(State)

    @pytest.mark.parametrize(
        ("state", "reason", "said"),
        [
            ("retryable", "error", "will try again"),
            ("retryable", "waiting", "rests"),
            ("discarded", "error", "failed for good"),
            ("scheduled", "", "scheduled"),
        ],
    )
    def test_say_what_becomes_of_a_failure(self, about, order, state, reason, said):
        assert state_of(about(order, state=state, reason_code=reason)) == said


class TestPayload:
    @pytest.fixture
    def plans(self, about, order):
        """Tasks with a payload each, by the text of what is asked for."""
        values = {"gold": "gold", "12": 12, "true": True, "1.5": 1.5, "o'clock %s": "o'clock %s", "": ""}
        return {
            text: about(order, number, payload={"plan": value}) for number, (text, value) in enumerate(values.items())
        }

    @pytest.mark.parametrize("text", ["gold", "12", "true", "1.5", "o'clock %s", ""])
    def test_is_asked_by_the_text_of_a_value(self, operator, plans, text):
        assert shown(operator.get(LIST, {"payload.plan": text})) == [plans[text].pk]
        assert shown(operator.get(LIST, {"payload": f"plan={text}"})) == [plans[text].pk]

    @pytest.mark.parametrize("key", ["17", 'a "b"', "a.b", "a=b", "ü"])
    def test_has_keys_of_any_kind(self, operator, about, order, key):
        row = about(order, payload={key: "yes"})
        about(order, payload={"other": "yes"})

        assert shown(operator.get(LIST, {f"payload.{key}": "yes"})) == [row.pk]

    def test_finds_exact_values_at_the_top_only(self, operator, plans, about, order):
        about(order, payload={"in": {"plan": "gold"}, "plan": ["gold"], "other": "gold"})

        assert shown(operator.get(LIST, {"payload.plan": "gol"})) == []
        assert shown(operator.get(LIST, {"payload.plan": "gold"})) == [plans["gold"].pk]

    def test_is_told_and_kept_and_goes_with_other_filters(self, operator, plans, about, order):
        about(order, task_key="care.greet", payload={"plan": "gold"})
        response = operator.get(LIST, {"payload.plan": "gold", "task": "care.call"})

        assert shown(response) == [plans["gold"].pk]
        assert {chip.name: chip.value for chip in response.context["chips"]}["Payload"] == "plan=gold"
        assert response.context["where"] == "?task=care.call&payload.plan=gold"
        assert response.context["strip"] == []

    @pytest.mark.parametrize("text", ["plan", "=gold", "plan\x00", "\x00=x"])
    def test_that_makes_no_sense_is_left_out(self, operator, plans, text):
        assert len(shown(operator.get(LIST, {"payload": text}))) == len(plans)

    def test_is_looked_for_among_so_many_and_further_on_the_next_page(self, operator, about, order, monkeypatch):
        monkeypatch.setattr(task_list, "LOOKED_AT", 3)
        rows = [about(order, number, payload={"plan": plan}) for number, plan in enumerate("abcdabcd")]

        first = operator.get(LIST, {"payload.plan": "d"})
        second = operator.get(LIST + first.context["next"])
        third = operator.get(LIST + second.context["next"])

        assert [shown(page) for page in (first, second, third)] == [[], [rows[3].pk], [rows[7].pk]]
        assert "Payloads have no index: 3 tasks were looked at, up to 2026-03-01 11:00." in text_of(first)
        assert [page.context["looked_up_to"] is None for page in (first, second, third)] == [False, False, True]
        back = operator.get(LIST + third.context["previous"])
        assert (shown(back), shown(operator.get(LIST + back.context["further"]))) == ([], [rows[3].pk])

    def test_is_not_asked_by_who_may_not_read_payloads(self, browse, person, plans):
        response = browse(person("viewer", "view_scheduledtask")).get(LIST, {"payload.plan": "gold"})

        assert len(shown(response)) == len(plans)
        assert "you may not read them" in text_of(response)
        assert 'name="payload"' not in text_of(response)

    def test_is_never_acted_on_at_once(self, operator, plans):
        matching = reverse("admin:timeline_scheduledtask_matching")
        where = f"{matching}?payload.plan=gold&action=cancel"

        for response in (operator.get(where), operator.post(where, {"reason": "x"})):
            assert response.url == f"{LIST}?payload.plan=gold"
        assert not ScheduledTask.objects.filter(state=State.CANCELLED).exists()
        assert matching not in text_of(operator.get(LIST, {"payload.plan": "gold"}))

    def test_takes_no_more_statements_than_others(self, operator, plans, django_assert_max_num_queries):
        with django_assert_max_num_queries(12):
            operator.get(LIST, {"payload.plan": "gold"})


class TestChoosingAll:
    def test_chooses_those_shown_without_a_script(self, operator, about, order):
        about(order, 1)
        page = text_of(operator.get(LIST))
        chosen = text_of(operator.get(LIST, {"chosen": "all"}))

        assert 'href="?&amp;chosen=all"' in page
        assert "checked> </label>" not in page.replace('"></label>', '"> </label>')
        assert re.search(r'name="task" value="[^"]+" checked', chosen)
        assert "data-timeline-refresh" not in chosen

    def test_leads_to_all_that_match_with_their_number(self, operator, about, order, monkeypatch):
        monkeypatch.setattr(task_list, "SIZE", 2)
        for number in range(5):
            about(order, number)

        assert ">All 5 that match…</a>" in text_of(operator.get(LIST))
        assert ">All 5 that match…</a>" in text_of(operator.get(LIST, {"day": "2026-03-01"}))
        assert ">The one that matches…</a>" in text_of(operator.get(LIST, {"day": "2026-03-01", "hour": "10"}))
        assert ">All that match…</a>" in text_of(operator.get(LIST, {"kind": "testapp.order"}))
        monkeypatch.setattr("timeline.admin.strip.MAX_COUNTED", 3)
        assert ">All 3+ that match…</a>" in text_of(operator.get(LIST))


class TestSearch:
    def test_finds_by_id_by_label_and_id_and_by_the_tasks_own_id(self, operator, about, user):
        order, other = Order.objects.create(pk=user.pk), Order.objects.create(pk=user.pk + 1)
        ours, theirs = about(order, 1), about(user, 2, task_key="account.welcome")
        about(other)

        def found(q):
            return shown(operator.get(LIST, {"q": q}))

        assert found(str(order.pk)) == [ours.pk, theirs.pk]
        assert found(f"testapp.order {order.pk}") == [ours.pk]
        assert found(f"Testapp.Order  {order.pk} ") == [ours.pk]
        assert found(str(theirs.pk)) == [theirs.pk]
        assert found("testapp.order") == []


class TestStrip:
    def test_counts_what_is_open_on_each_of_thirty_days(self, operator, about, order):
        for hours, state in [(1, State.SCHEDULED), (2, State.RETRYABLE), (3, State.COMPLETED), (26, State.SCHEDULED)]:
            about(order, hours, state=state)
        about(order, 24 * 30)

        days = operator.get(LIST).context["strip"]

        assert len(days) == 30
        assert [day.due for day in days[:3]] == [2, 1, 0]
        assert sum(day.due for day in days) == 3

    def test_leads_to_the_list_of_a_day_and_back(self, operator, about, order):
        about(order, 26)

        to_day = strip(operator.get(LIST, {"timeline": "care"}))["2026-03-02"].where
        response = operator.get(LIST + to_day)

        assert len(shown(response)) == 1
        assert strip(response)["2026-03-02"].is_chosen
        assert strip(response)["2026-03-02"].where == "?timeline=care"

    def test_follows_the_other_filters(self, operator, about, order, user):
        about(order, 1)
        about(user, 1, task_key="account.welcome")

        assert strip(operator.get(LIST, {"kind": "accounts.user"}))["2026-03-01"].due == 1

    @pytest.mark.parametrize("state", State)
    def test_counts_what_the_list_shows(self, operator, about, order, state):
        """Of what has ended, on the days that have passed."""
        side = -26 if state in FINAL else 1
        for each in State:
            about(order, side, state=each)

        response = operator.get(LIST, {"state": state})

        at_work = state in (State.AVAILABLE, State.PENDING, State.ACTIVE)
        assert [day.due for day in response.context["strip"] if day.due] == [1]
        day = strip(response)["2026-02-28" if state in FINAL else "2026-03-01"]
        assert (day.due, shown(operator.get(LIST + day.where))) == (1, shown(response))
        assert at_work or f"state: {state_titles()[state]}" in text_of(response)

    @pytest.mark.parametrize(
        ("state", "hours", "due"),
        [("overdue", -26, 5), ("overdue", 1, 0), ("ended", -26, 3), ("all", 1, 8), ("open", 1, 5)],
    )
    def test_counts_what_the_list_shows_of_several_states(self, operator, about, order, state, hours, due):
        for each in State:
            about(order, hours, state=each)

        response = operator.get(LIST, {"state": state})

        assert sum(day.due for day in response.context["strip"]) == due - (state == "overdue" and due > 0)
        assert len(shown(response)) == sum(day.due for day in response.context["strip"])

    def test_stops_counting_where_a_day_has_very_many(self, operator, about, order, monkeypatch):
        monkeypatch.setattr("timeline.admin.strip.MAX_COUNTED", 3)
        for _ in range(5):
            about(order)

        response = operator.get(LIST)

        assert (strip(response)["2026-03-01"].due, strip(response)["2026-03-01"].is_more) == (3, True)
        assert "3+" in text_of(response)

    def test_says_each_day_in_words(self, operator, about, order):
        about(order)

        assert "1 task on Sunday, 2026-03-01" in text_of(operator.get(LIST))


class TestWhoSees:
    def test_the_page_needs_staff(self, browse, person):
        response = browse(person("ada")).get(LIST)

        assert response.status_code == 302
        assert "/admin/login/" in response.url

    def test_the_page_needs_the_permission_or_a_row_of_ones_own(self, browse, person, about):
        staff = person("staff", is_staff=True)

        assert browse(staff).get(LIST).status_code == 403
        own = about(staff, task_key="account.welcome")
        about(person("ada"), task_key="account.welcome")
        assert shown(browse(staff).get(LIST)) == [own.pk]

    def test_the_buttons_are_those_permitted(self, browse, person, about, order):
        about(order)
        about(order, state=State.DISCARDED)

        for permission in ("cancel", "move", "run_now", "redrive"):
            client = browse(person(permission, "view_scheduledtask", f"{permission}_scheduledtask"))
            assert offered(client, state="all") == [permission]
        assert 'type="checkbox" name="task"' not in text_of(browse(person("viewer", "view_scheduledtask")).get(LIST))

    def test_reasons_that_quote_an_error_need_the_permission(self, browse, person, operator, about, order):
        about(order, state=State.RETRYABLE, reason_code="error", reason="secret of ada")

        assert "secret of ada" in text_of(operator.get(LIST))
        assert "secret of ada" not in text_of(browse(person("viewer", "view_scheduledtask")).get(LIST))

    def test_nothing_is_added_changed_or_deleted(self, operator, about, order):
        row = about(order)

        for path in (f"{LIST}add/", f"{LIST}{row.pk}/delete/", f"{LIST}{row.pk}/history/"):
            assert operator.get(path).status_code == 404
        operator.post(detail(row), {"state": "completed"})
        assert ScheduledTask.objects.get(pk=row.pk).state == "scheduled"


class TestActions:
    def test_are_those_that_lead_anywhere_from_what_is_listed(self, operator, about, order):
        about(order)
        about(order, state=State.ACTIVE)
        about(order, state=State.DISCARDED)

        assert offered(operator) == ["cancel", "move", "run_now"]
        assert offered(operator, state="active") == ["cancel", "move"]
        assert offered(operator, state="discarded") == ["redrive"]
        assert offered(operator, state="all") == ["cancel", "move", "run_now", "redrive"]
        assert offered(operator, q="17") == []


class TestQueries:
    def test_are_as_many_for_ten_rows_as_for_a_thousand(self, operator, make_task, now):
        counts = []
        for number in (10, 990):
            for order in [Order.objects.create() for _ in range(10)]:
                ScheduledTask.objects.bulk_create(
                    ScheduledTask(
                        task_key="care.call",
                        occurrence=str(step),
                        entity_label="testapp.order",
                        entity_id=str(order.pk),
                        state=State.SCHEDULED,
                        nominal_at=now,
                        scheduled_at=now + timedelta(minutes=step),
                        created_at=now,
                        max_attempts=1,
                    )
                    for step in range(number // 10)
                )
            with CaptureQueriesContext(connection) as queries:
                assert operator.get(LIST).status_code == 200
            counts.append(len(queries))

        assert counts[0] == counts[1] <= 12
        assert not [query for query in queries if "__count" in query["sql"]]

    def test_stay_within_bounds_with_many_kinds_of_entities(self, operator, about, order, user):
        about(order)
        about(user, task_key="account.welcome")
        about(None)

        with CaptureQueriesContext(connection) as queries:
            operator.get(LIST)

        assert len(queries) <= 12


class TestPart:
    def test_is_the_list_alone(self, operator, about, order):
        row = about(order)

        part = text_of(operator.get(LIST, {"part": ""}))

        assert str(row.pk) in part
        assert "<html" not in part
        assert "csrfmiddlewaretoken" not in part

    def test_brings_the_buttons_with_the_first_rows(self, operator, about, order):
        """A list that was empty when it was opened has none."""
        assert 'name="action"' not in text_of(operator.get(LIST))
        about(order)

        assert 'name="action" value="cancel"' in text_of(operator.get(LIST, {"part": ""}))


class TestDates:
    def test_have_one_style_on_all_pages(self, operator, about, order, clock):
        """As the story of a task has them: year, month, day."""
        row = about(order, -5, state=State.DISCARDED, attempt=1, expires_at=clock.now)
        LogEntry.objects.bulk_create(
            LogEntry(task=row, seq=seq, at=clock.now, from_state=a, to_state=b, attempt=1)
            for seq, (a, b) in enumerate([("available", "active"), ("active", "discarded")], 1)
        )
        emit("order.placed", order)
        leave("care", order, reason="they moved")
        start("care", order)
        of_ended_run = ScheduledTask.objects.get(task_key="care.greet", state=State.CANCELLED)
        page = f"{ENTITY}?label=testapp.order&id={order.pk}"

        for path in (f"{LIST}?state=all&day=2026-03-01", detail(row), detail(of_ended_run), page):
            text = text_of(operator.get(path))
            assert "2026-03-01 " in text
            assert not re.search(r"March|Mar\.|\d\d/\d\d/\d{4}|noon| [ap]\.m\.", text)


def test_the_index_names_the_page_for_those_who_may_open_it(browse, person):
    assert "Upcoming events" in text_of(browse(person("viewer", *ALL)).get("/admin/"))
    assert "Upcoming events" not in text_of(browse(person("staff", is_staff=True)).get("/admin/"))


@pytest.mark.parametrize(("name", "text"), sample(list(product(NAMES, NULS)), 3))
def test_a_character_that_no_database_takes_is_no_error(operator, about, order, name, text):
    about(order)

    assert operator.get(LIST, {name: text}).status_code == 200
    assert operator.get(ENTITY, {"label": "testapp.order", "id": order.pk, name: text}).status_code in (200, 404)


class TestSecondTry:
    @pytest.mark.parametrize(
        ("failed", "said"),
        [
            ({"failures": 1}, "completed at the second try"),
            ({"lost": 1}, "completed at the second try"),
            ({"failures": 2, "lost": 1}, "completed at try 4"),
        ],
    )
    def test_is_told_of_what_failed_first(self, operator, about, order, failed, said):
        row = about(order, state=State.COMPLETED, attempt=4, **failed)

        assert said in text_of(operator.get(LIST, {"state": "completed"}))
        assert said in text_of(operator.get(detail(row)))

    def test_is_not_told_of_what_completed_at_once_however_often_it_rested(self, operator, about, order):
        about(order, state=State.COMPLETED, attempt=4)

        assert "completed at" not in text_of(operator.get(LIST, {"state": "completed"}))
