"""Approvals and steps in doubt, on the page of what waits for people: who sees them, in which order, and who may decide."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.admin.conftest import ALL, ENTITY, LIST, detail, text_of
from tests.admin.test_people import PEOPLE, Complaint, links
from tests.testapp.models import Order
from timeline import Timeline, after, approval, step, task
from timeline.models import ScheduledTask
from timeline.policy import TimelinePolicy
from timeline.shortcuts import cancel, emit, hold, move, reject
from timeline.testing import only_timelines

DAYS = timedelta(days=1)


class Refunding(Timeline):
    entity = "testapp.Order"
    starts_on = "refund.asked"

    @task(approval("refund", by="testapp.change_order", within=timedelta(days=2)), atomic=False, title="Refund it")
    def refund(self, order):
        return self.wait_for("bank.answered", within=timedelta(days=9)) and "done"


class Lending(Timeline):
    """Asks for a longer time, and as something else."""

    entity = "testapp.Order"
    starts_on = "loan.asked"

    @task(approval("loan", by="testapp.delete_order", within=timedelta(days=9)))
    def lend(self, order): ...


class Paying(Timeline):
    entity = "testapp.Order"
    starts_on = "bill.sent"

    @task(after(), atomic=False)
    def pay(self, order):
        return self.transfer()

    @step(atomic=False, once=True)
    def transfer(self):
        raise TimeoutError("the bank did not answer")


class Closing(Timeline):
    """Of the system: about no entity."""

    starts_on = "month.over"

    @task(approval("books", by="testapp.change_order", within=timedelta(days=3)))
    def close(self): ...


WAITS = "waits for approval until 2026-03-03 09:00"


class TestInATimeline:
    def test_is_said_to_wait_for_a_person(self, operator, order):
        with only_timelines(Refunding):
            emit("refund.asked", order)
            text = text_of(operator.get(ENTITY, {"label": "testapp.order", "id": order.pk}))

            assert f'<td class="tl-long">{WAITS}' in text
            assert f"scheduled – {WAITS}</title>" in text
            assert WAITS in text_of(operator.get(LIST))

    def test_is_said_so_where_somebody_has_moved_it(self, operator, order, now):
        with only_timelines(Refunding):
            emit("refund.asked", order)
            move(ScheduledTask.objects.get(), at=now + 9 * DAYS, reason="a holiday")
            text = text_of(operator.get(ENTITY, {"label": "testapp.order", "id": order.pk}))

        assert '<td class="tl-long">it was moved: a holiday; waits for approval until 2026-03-03 09:00<' in text

    def test_is_not_once_somebody_has_decided(self, operator, order):
        with only_timelines(Refunding):
            emit("refund.asked", order)
            reject(ScheduledTask.objects.get(), actor="ada")
            text = text_of(operator.get(ENTITY, {"label": "testapp.order", "id": order.pk}))

        assert "waits for approval" not in text

    def test_is_not_what_waits_for_its_time(self, operator, order):
        emit("order.placed", order)

        assert "waits for approval" not in text_of(operator.get(ENTITY, {"label": "testapp.order", "id": order.pk}))


class TestTheLink:
    @pytest.mark.parametrize("timelines", [[Refunding], [], [Paying]])
    def test_is_there_before_anybody_waits(self, operator, timelines):
        with only_timelines(*timelines):
            assert f'<a href="{PEOPLE}">People</a>' in text_of(operator.get(LIST))

    def test_is_not_for_who_may_not_see_the_page(self, browse, person, about):
        bea = person("bea", is_staff=True)
        about(bea)

        page = browse(bea).get(LIST)

        assert page.status_code == 200
        assert PEOPLE not in text_of(page)


class NoRefunds(TimelinePolicy):
    """Of a host that shows some tasks only."""

    def visible(self, tasks, user):
        return super().visible(tasks, user).exclude(task_key="refunding.refund")


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Complaint, Refunding, Lending, Paying, Closing):
        yield


@pytest.fixture
def operator(person, browse):
    return browse(person("olga", *ALL, "change_order"))


@pytest.fixture
def asked(clock):
    """Asks for something about a new order, and gives its task."""

    def made(event="refund.asked"):
        order = Order.objects.create()
        emit(event, order)
        return ScheduledTask.objects.filter(entity_id=str(order.pk)).first()

    return made


def entities(page):
    """The ids of the entities of a page, in its order."""
    return [part.partition('"')[0] for part in page.split("label=testapp.order&amp;id=")[1:]]


def forms(page, row):
    """What the form of a task on a page lets one do."""
    _before, found, rest = page.partition(f'name="task" value="{row.pk}"')
    form = rest.partition("</form>")[0] if found else ""
    return [verb for verb in ("approve", "reject") if f'name="action" value="{verb}"' in form]


class TestApprovals:
    def test_are_listed_with_machines_by_their_deadlines_and_last_what_has_none(self, operator, asked, clock):
        waiting = {}
        for event in ("loan.asked", "complaint.made", "refund.asked", "loan.asked", "refund.asked", "complaint.made"):
            order = Order.objects.create()
            emit(event, order)
            waiting.setdefault(event, []).append(str(order.pk))
            clock.set(clock.now + timedelta(hours=5))

        in_order = [*waiting["refund.asked"], *waiting["loan.asked"], *waiting["complaint.made"]]
        assert entities(operator.get(PEOPLE).content.decode()) == in_order

    def test_say_what_since_when_until_when_and_who_may_decide(self, operator, asked):
        row = asked()
        page = text_of(operator.get(PEOPLE))

        assert f'href="{detail(row)}"' in page
        assert "Refund it" in page
        assert row.created_at.strftime("%Y-%m-%dT%H:%M") in page
        assert row.nominal_at.strftime("%Y-%m-%dT%H:%M") in page
        assert "testapp.change_order" in page
        assert "on hold" not in page

    def test_have_buttons_only_for_who_may_decide(self, operator, person, browse, asked):
        row, other = asked(), asked("loan.asked")
        assert forms(operator.get(PEOPLE).content.decode(), row) == ["approve", "reject"]
        assert forms(operator.get(PEOPLE).content.decode(), other) == []

        stranger = browse(person("vera", *ALL)).get(PEOPLE).content.decode()

        assert forms(stranger, row) == []
        assert f'href="{detail(row)}"' in stranger

    def test_are_decided_by_the_buttons(self, operator, asked):
        row = asked()
        parts = operator.get(PEOPLE).content.decode().split("<form")[1:]
        [form] = [part for part in parts if f'name="task" value="{row.pk}"' in part.partition("</form>")[0]]
        assert 'method="post"' in form
        assert 'name="alone"' in form

        token = form.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
        given = {"action": "approve", "task": row.pk, "alone": 1, "csrfmiddlewaretoken": token}

        page = text_of(operator.post(form.partition('action="')[2].partition('"')[0], given))

        assert "The first decision stands." in page

    def test_are_not_seen_by_whom_the_policy_does_not_show_the_task(self, operator, asked, settings):
        asked(), asked("loan.asked")
        settings.TIMELINE = settings.TIMELINE | {"POLICY": f"{__name__}.NoRefunds"}

        page = text_of(operator.get(PEOPLE))

        assert "Refund it" not in page
        assert "lending.lend" in page

    def test_are_for_who_may_see_all_tasks(self, person, browse, asked):
        asked()
        assert browse(person("mia", "change_order")).get(PEOPLE).status_code == 403

    def test_are_gone_when_decided_cancelled_or_too_late(self, operator, asked, clock):
        decided, called_off, moved = asked(), asked(), asked()
        reject(decided, actor="ada", reason="no")
        cancel(called_off, reason="no", actor="ada")
        reject(moved, actor="ada", reason="no")
        move(moved, at=clock.now + DAYS, reason="later", actor="ada")
        assert "Nothing waits for people." in text_of(operator.get(PEOPLE))

        late = asked()
        assert entities(operator.get(PEOPLE).content.decode()) == [late.entity_id]
        clock.set(clock.now + 3 * DAYS)
        assert "Nothing waits for people." in text_of(operator.get(PEOPLE))

    def test_are_gone_when_their_handler_waits_for_something_else(self, operator, asked, clock):
        row = asked()
        emit("refund.approved", row.entity_ref, actor="ada")
        clock.run_due()
        row.refresh_from_db()
        assert (row.state, row.awaits) == ("retryable", "bank.answered")

        assert "Nothing waits for people." in text_of(operator.get(PEOPLE))

    def test_are_marked_where_they_are_on_hold(self, operator, asked):
        row, _other = asked(), asked()
        hold(row.entity_ref, reason="a dispute", actor="ada")

        page = text_of(operator.get(PEOPLE))

        assert page.count("on hold") == 1

    def test_may_be_of_the_system(self, operator):
        emit("month.over", None)

        page = text_of(operator.get(PEOPLE))

        assert "The system" in page
        assert forms(page, ScheduledTask.objects.get()) == ["approve", "reject"]

    def test_can_be_decided_where_the_approval_had_another_name(self, operator, asked):
        row = asked()
        ScheduledTask.objects.filter(pk=row.pk).update(awaits="return.approved return.rejected")

        assert forms(operator.get(PEOPLE).content.decode(), row) == ["approve", "reject"]

    def test_go_by_their_timeline(self, operator, asked):
        asked(), asked("loan.asked"), asked("complaint.made")

        page = operator.get(f"{PEOPLE}?machine=refunding").content.decode()

        assert len(entities(page)) == 1
        assert not links(page, "complaint.settled")

    def test_show_no_payload(self, operator, asked):
        ScheduledTask.objects.filter(pk=asked().pk).update(payload={"iban": "DE00 secret"})

        assert "secret" not in text_of(operator.get(PEOPLE))

    def test_go_on_where_there_is_more(self, operator, asked, clock, monkeypatch):
        monkeypatch.setattr("timeline.features.machines.people.SHOWN", 2)
        for number in range(9):
            asked(("loan.asked", "complaint.made", "refund.asked")[number % 3])
            if number % 4 == 0:  # Some have come at the same moment.
                clock.set(clock.now + timedelta(microseconds=1))
        seen, address = [], PEOPLE
        while address:
            page = operator.get(address).content.decode()
            seen += entities(page)
            more = [part.partition('"')[0] for part in page.split('href="') if "after=" in part.partition('"')[0]]
            address = more[0].replace("&amp;", "&") if more else ""

        assert len(seen) == 9
        assert set(seen) == {str(order.pk) for order in Order.objects.all()}

    def test_go_on_where_all_of_a_page_may_not_be_seen(self, operator, asked, clock, monkeypatch, settings):
        settings.TIMELINE = settings.TIMELINE | {"POLICY": "tests.admin.test_people.Hiding"}
        monkeypatch.setattr("timeline.features.machines.people.SHOWN", 2)
        for _number in range(3):
            asked("complaint.made")

        page = operator.get(PEOPLE).content.decode()

        assert "after=" in page
        assert "Nothing waits for people." not in page

    def test_ask_as_much_for_many_as_for_few(self, operator, asked):
        def statements():
            with CaptureQueriesContext(connection) as queries:
                operator.get(PEOPLE)
            return len(queries)

        asked(), asked("loan.asked"), asked("complaint.made")
        few = statements()
        for _number in range(12):
            asked(), asked("loan.asked"), asked("complaint.made")
        assert statements() == few
        assert few <= 18  # Where the database cannot take limits in a union, there is one for each kind and state.

    def test_are_reason_enough_for_the_link(self, operator):
        with only_timelines(Refunding):
            assert PEOPLE in text_of(operator.get(LIST))
        with only_timelines(Paying):
            assert PEOPLE in text_of(operator.get(LIST))

    @pytest.mark.parametrize("at", ["8999-12-31T00:00", "1970-01-01T00:00"])
    def test_begin_at_any_place(self, operator, asked, at):
        asked()
        assert operator.get(f"{PEOPLE}?after=until/{at}:00.000000%2B0000/{'0' * 32}").status_code == 200


@pytest.mark.timeline(raises=False)
class TestStepsInDoubt:
    def test_are_counted_with_a_link_to_their_list(self, operator, asked, clock):
        assert "in_doubt" not in text_of(operator.get(PEOPLE))
        asked("bill.sent"), asked("bill.sent")
        clock.run_due()

        page = operator.get(PEOPLE).content.decode()
        [where] = [part.partition('"')[0] for part in page.split('href="') if "in_doubt" in part.partition('"')[0]]

        assert "2 tasks rest" in page
        assert "Nothing waits for people." not in page
        rests = ScheduledTask.objects.filter(reason_code="in_doubt")
        listed = text_of(operator.get(where.replace("&amp;", "&")))
        assert [detail(row) in listed for row in rests] == [True, True]

    def test_are_counted_up_to_a_bound(self, operator, asked, clock, monkeypatch):
        for module in ("timeline.admin.bar", "timeline.features.machines.pages"):
            monkeypatch.setattr(f"{module}.MOST", 1)
        asked("bill.sent"), asked("bill.sent")
        clock.run_due()

        assert "At least 1 tasks" in text_of(operator.get(PEOPLE))

    def test_are_counted_among_those_that_the_user_may_see(self, operator, asked, clock, settings):
        asked("bill.sent")
        clock.run_due()
        settings.TIMELINE = settings.TIMELINE | {"POLICY": f"{__name__}.Nothing"}

        assert "in_doubt" not in text_of(operator.get(PEOPLE))


class Nothing(TimelinePolicy):
    """Of a host that shows none."""

    def visible(self, tasks, user):
        return tasks.none()
