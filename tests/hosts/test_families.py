"""Families: an entity is one, whichever model of its family it is looked at through."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from tests.testapp.models import (
    Account,
    Badge,
    Customer,
    CustomerProxy,
    Employee,
    Order,
    OrderProxy,
    Plane,
    Reseller,
    Seaplane,
    Ship,
    Vessel,
)
from timeline import Timeline, after, at, created, task
from timeline.exceptions import KeyConflict, WrongEntity
from timeline.features.sweep import verbs
from timeline.ids import uuid7
from timeline.models import EntityRef, Event, ScheduledTask, TimelineRun
from timeline.models.kin import kin_of, names_of
from timeline.operations import emit as operations_emit
from timeline.shortcuts import (
    cancel_all,
    emit,
    emit_many,
    enroll,
    foreseen,
    leave,
    preview,
    reconcile,
    schedule,
    start,
    start_many,
)
from timeline.store.locks import lock_entities, lock_rows
from timeline.testing import expect, only_timelines


class Expiry(Timeline):
    """About accounts."""

    entity = "testapp.Account"
    starts_on = "published"
    exits = {"unpublished": "taken down"}

    @task(at("ends_at"))
    def end(self, account: Account) -> None: ...

    @task(after(end, days=1))
    def archive(self, account: Account) -> None: ...

    @task()
    def call(self, account: Account) -> None: ...


class Press(Timeline):
    """About customers, who are accounts."""

    entity = "testapp.Customer"
    starts_on = "published"
    exits = {"unpublished": "withdrawn"}

    @task(after(days=1))
    def announce(self, customer: Customer) -> None: ...

    @task(at("visits_at"))
    def visit(self, customer: Customer) -> None: ...

    @task()
    def call(self, customer: Customer) -> None: ...


class Staffing(Timeline):
    """About employees, who are accounts and have badges."""

    entity = "testapp.Employee"
    starts_on = "published"
    exits = {"unpublished": "left", "badge.lost": "no badge"}

    @task(after(days=1))
    def train(self, employee: Employee) -> None: ...


class Pass(Timeline):
    """About badges."""

    entity = "testapp.Badge"
    starts_on = "published"
    exits = {"unpublished": "withdrawn"}

    @task(after(days=1))
    def check(self, badge: Badge) -> None: ...


class Voyage(Timeline):
    """About vessels."""

    entity = "testapp.Vessel"
    starts_on = "published"
    exits = {"unpublished": "stays"}

    @task(at("leaves_at"))
    def leave(self, vessel: Vessel) -> None: ...


class Flight(Timeline):
    """About planes, which are vessels."""

    entity = "testapp.Plane"
    starts_on = "published"
    exits = {"unpublished": "grounded"}

    @task(after(days=1))
    def fly(self, plane: Plane) -> None: ...


WAYS = {
    "parent": lambda entity: Account.objects.get(pk=entity.pk),
    "child": lambda entity: Customer.objects.get(pk=entity.pk),
    "proxy": lambda entity: CustomerProxy.objects.get(pk=entity.pk),
    "grandchild": lambda entity: entity,
}
NAMES = ["testapp.account", "testapp.customer", "testapp.customerproxy", "testapp.reseller"]


@pytest.fixture
def in_a_week(clock):
    return clock.now + timedelta(days=7)


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Expiry, Press):
        yield


@pytest.fixture
def reseller(clock, in_a_week):
    Account.objects.create()  # So that not everything has the key 1.
    return Reseller.objects.create(ends_at=in_a_week, visits_at=in_a_week)


@pytest.fixture(params=WAYS)
def given(request, reseller):
    """The same entity, as an instance of each model of its family."""
    return WAYS[request.param](reseller)


def open_runs():
    return sorted(TimelineRun.objects.open().values_list("timeline", "entity_label", "entity_id"))


class TestAnEvent:
    def test_ends_the_open_runs_of_a_parent_when_a_child_has_a_timeline_too(self, reseller):
        with only_timelines(Expiry):
            emit("published", reseller)
        assert open_runs() == [("expiry", "testapp.account", str(reseller.pk))]

        emission = emit("unpublished", reseller)

        assert [(run.timeline, run.end_reason) for run in emission.ended] == [("expiry", "taken down")]
        assert not ScheduledTask.objects.open().exists()

    def test_goes_to_the_timelines_of_the_whole_family(self, given):
        emission = emit("published", given)

        key = str(given.pk)
        assert open_runs() == [("expiry", "testapp.account", key), ("press", "testapp.customer", key)]
        assert {run.started_by for run in emission.started} == {Event.objects.get()}

        ended = emit("unpublished", given).ended

        assert {run.end_reason for run in ended} == {"taken down", "withdrawn"}
        assert not ScheduledTask.objects.open().exists()

    def test_is_one_event_under_the_topmost_model(self, given):
        emit("published", given)

        assert Event.objects.get().entity_ref == ("testapp.account", str(given.pk))

    def test_does_nothing_when_it_comes_again_by_another_model(self, given, reseller):
        emit("published", reseller, key="1", payload={"by": "ada"})

        emission = emit("published", given, key="1", payload={"by": "ada"})

        assert (emission.recorded, emission.event) == (False, Event.objects.get())
        assert TimelineRun.objects.count() == 2
        with pytest.raises(KeyConflict):
            emit("published", given, key="1", payload={"by": "ben"})

    @pytest.mark.parametrize("label", NAMES[:2] + NAMES[3:])
    def test_is_known_where_it_was_recorded_under_another_name(self, given, label, clock):
        """As by a version of this app that named an entity by the nearest model with a timeline."""
        said = {"name": "published", "key": "1", "occurred_at": clock.now, "recorded_at": clock.now}
        before = Event.objects.create(entity_label=label, entity_id=str(given.pk), **said)

        assert emit("published", given, key="1").event == before
        assert emit_many("published", [given], key="1").again == 1
        assert not TimelineRun.objects.exists()
        with pytest.raises(KeyConflict):
            emit("published", given, key="1", payload={"by": "ben"})

    def test_starts_no_timeline_of_a_child_that_there_is_not(self, clock):
        account = Account.objects.create()

        emit("published", account)

        assert open_runs() == [("expiry", "testapp.account", str(account.pk))]

    def test_of_a_child_that_there_is_not_is_refused(self, clock):
        account = Account.objects.create()

        with pytest.raises(WrongEntity):
            emit("published", Customer(account_ptr=account))
        assert not Event.objects.exists()

    def test_may_be_named_by_a_proxy(self, reseller, now):
        ref = EntityRef("testapp.customerproxy", str(reseller.pk))
        said = {"key": "", "payload": {}, "actor": "", "occurred_at": None, "using": "default"}

        assert len(operations_emit.emit(name="published", entity=ref, **said).started) == 2

    def test_that_came_between_ends_what_is_about_to_run(self, reseller, clock):
        """Recorded under another name than the run has, by whom knew no timeline that it is an exit of."""
        emit("published", reseller)
        said = {"name": "unpublished", "occurred_at": clock.now, "recorded_at": clock.now, "id": uuid7()}
        Event.objects.create(entity_label="testapp.account", entity_id=str(reseller.pk), **said)

        clock.advance(days=1)

        expect(reseller).cancelled("announce", reason="withdrawn")

    def test_asks_no_more_of_a_model_without_a_family(self, order, django_assert_num_queries):
        refs = [EntityRef("testapp.order", str(order.pk)), EntityRef("", ""), EntityRef("gone.model", "1")]

        with django_assert_num_queries(0):
            assert kin_of(refs, using="default") == {ref: (ref,) for ref in refs}

    def test_starts_a_child_that_is_not_there_yet_when_it_is(self, clock):
        account = Account.objects.create()
        emit("published", account)
        Customer(account_ptr=account).save_base(raw=True)

        emit("published", account)

        assert [timeline for timeline, _label, _key in open_runs()] == ["expiry", "press"]


class TestManyEvents:
    def test_of_parents_and_children_are_one_each(self, reseller, clock):
        others = [Account.objects.create(), Customer.objects.create()]
        Account.objects.create()

        tally = emit_many("published", [reseller, *others, Account.objects.get(pk=others[1].pk)])

        assert (tally.recorded, tally.started) == (4, 5)
        assert Event.objects.filter(entity_id=str(others[1].pk)).count() == 2
        assert set(Event.objects.values_list("entity_label", flat=True)) == {"testapp.account"}

    def test_of_a_queryset_go_to_the_whole_family(self, reseller, clock):
        tally = emit_many("published", Account.objects.all())

        assert (tally.recorded, tally.started) == (2, 3)
        assert emit_many("unpublished", Customer.objects.all()).ended == 2

    @pytest.mark.parametrize("key", ["", "1"])
    def test_take_as_many_queries_for_40_as_for_10(
        self, clock, key, django_assert_num_queries, django_assert_max_num_queries
    ):
        def some(count):
            return [Customer.objects.create() for _ in range(count)]

        few, many = some(10), some(40)
        with django_assert_max_num_queries(20) as counted:
            emit_many("published", [*few, *Account.objects.filter(pk__in=[each.pk for each in few])], key=key)

        with django_assert_num_queries(len(counted)):
            emit_many("published", [*many, *Account.objects.filter(pk__in=[each.pk for each in many])], key=key)


class TestVerbs:
    def test_start_and_leave_take_any_of_them(self, given):
        run = start(Press, given).run

        assert run.entity_ref == ("testapp.customer", str(given.pk))
        assert not start(Press, given).created
        assert leave(Press, given, reason="left") == run

    def test_start_no_child_that_there_is_not(self, clock):
        account = Account.objects.create()

        for refused in (
            lambda: start(Press, account),
            lambda: schedule("press.call", account, at=clock.now),
            lambda: preview(Press, account),
        ):
            with pytest.raises(WrongEntity):
                refused()
        assert not TimelineRun.objects.exists()
        assert not ScheduledTask.objects.exists()

    def test_schedule_preview_and_reconcile_take_any_of_them(self, given, clock, in_a_week):
        start(Press, given)
        start(Expiry, given)
        Customer.objects.update(visits_at=in_a_week + timedelta(days=1))
        Account.objects.update(ends_at=in_a_week + timedelta(days=2))

        made = schedule("press.call", given, at=clock.now, key="k").task
        reconcile(given)

        assert made.entity_ref == ("testapp.customer", str(given.pk))
        assert not schedule("press.call", given, at=clock.now, key="k").created
        assert [item.task_key for item in preview(Press, given)] == ["press.announce", "press.visit"]
        expect(given).scheduled("visit", at=in_a_week + timedelta(days=1))
        expect(given).scheduled("end", at=in_a_week + timedelta(days=2))

    def test_cancel_all_of_it(self, given, clock):
        emit("published", given)
        schedule("expiry.call", given, at=clock.now)

        assert len(cancel_all(given, reason="enough")) == 4

        assert not ScheduledTask.objects.open().exists()
        assert not TimelineRun.objects.open().exists()

    def test_cancel_nothing_of_others(self, reseller, clock):
        other = Customer.objects.create()
        emit("published", other)

        assert cancel_all(reseller, reason="enough") == []

        assert len(open_runs()) == 2

    def test_enroll_and_start_many_those_parents_that_are_children(self, reseller, clock):
        assert enroll(Press, Account.objects.all()).started == 1
        assert start_many(Press, Account.objects.all(), key="again").started == 1
        with pytest.raises(WrongEntity):
            start_many(Press, list(Account.objects.all()), key="third")


class TestQuestions:
    def test_find_rows_by_any_name(self, given):
        emit("published", given)

        assert ScheduledTask.objects.for_entity(given).count() == 3
        assert TimelineRun.objects.for_entity(given).count() == 2
        assert Event.objects.for_entity(given).count() == 1
        assert [item.task_key for item in foreseen(given)] == ["expiry.archive"]

    @pytest.mark.parametrize("label", NAMES)
    def test_find_rows_by_any_label(self, reseller, label, django_assert_num_queries):
        emit("published", reseller)

        with django_assert_num_queries(2):  # One to see whether it is an employee, who has a badge with another key.
            assert len(ScheduledTask.objects.for_entity(EntityRef(label, str(reseller.pk)))) == 3

    def test_find_no_rows_of_others(self, reseller, clock):
        emit("published", Customer.objects.create())
        Order.objects.create(pk=reseller.pk)

        assert not ScheduledTask.objects.for_entity(reseller)

    @pytest.mark.parametrize("label", NAMES)
    def test_explain_by_any_label(self, reseller, label):
        emit("published", reseller)
        out = StringIO()

        call_command("timeline_explain", label, str(reseller.pk), stdout=out)

        assert all(key in out.getvalue() for key in ("expiry.end", "expiry.archive", "press.announce"))

    def test_find_the_rows_of_a_proxy_by_its_label(self, order, make_task):
        row = make_task(entity_label="testapp.order", entity_id=str(order.pk))

        assert ScheduledTask.objects.for_entity(EntityRef("testapp.orderproxy", str(order.pk))).get() == row
        assert ScheduledTask.objects.for_entity(OrderProxy.objects.get()).get() == row


class TestAChildThatIsDeleted:
    def test_ends_its_own_runs_when_its_parent_stays(self, clock):
        customer = Customer.objects.create()
        emit("published", customer)

        customer.delete(keep_parents=True)

        assert open_runs() == [("expiry", "testapp.account", str(Account.objects.get().pk))]

    def test_can_still_be_spoken_of_as_its_parent(self, clock):
        customer = Customer.objects.create()
        emit("published", customer)
        customer.delete(keep_parents=True)

        assert len(emit("unpublished", Account.objects.get()).ended) == 1


class TestAChildMadeOfAParent:
    @pytest.mark.parametrize("how", ["save", "raw"])
    def test_is_reached_by_what_happens_from_then_on(self, clock, how, in_a_week):
        account = Account.objects.create(ends_at=in_a_week)
        emit("published", account)
        child = Customer(account_ptr=account, ends_at=in_a_week)
        child.save() if how == "save" else child.save_base(raw=True)

        start(Press, child)
        emit("unpublished", account)

        assert not TimelineRun.objects.open().exists()

    def test_starts_its_own_created_timelines(self, clock):
        class Greeting(Timeline):
            entity = "testapp.Customer"
            starts_on = created()

            @task(after(days=1))
            def greet(self, customer: Customer) -> None: ...

        with only_timelines(Greeting, Expiry):
            account = Account.objects.create()
            assert open_runs() == []
            Customer(account_ptr=account).save()

        assert open_runs() == [("greeting", "testapp.customer", str(account.pk))]

    def test_is_passed_over_by_the_sweep_once_an_exit_is_recorded(self, clock):
        class Greeting(Timeline):
            entity = "testapp.Customer"
            starts_on = created()
            exits = {"unpublished": "gone"}

            @task(after(days=1))
            def greet(self, customer: Customer) -> None: ...

        with only_timelines(Greeting):
            _sweep(clock)
            left, there = Customer(), Customer()
            with only_timelines():
                left.save()
                there.save()
            emit("unpublished", Account.objects.get(pk=left.pk))
            _sweep(clock)
            _sweep(clock)

        assert open_runs() == [("greeting", "testapp.customer", str(there.pk))]


def _sweep(clock):
    while verbs.sweep(now=clock.now, using="default").left:
        pass
    verbs.begin_round(using="default")


class TestALinkThatIsNotThePrimaryKey:
    """An employee has the key of an account, and a badge that has one of its own."""

    @pytest.fixture(autouse=True)
    def _known(self, clock):
        with only_timelines(Expiry, Staffing, Pass):
            yield

    @pytest.fixture
    def employee(self, clock, in_a_week):
        Badge.objects.create()  # So that the keys differ.
        return Employee.objects.create(ends_at=in_a_week)

    @pytest.fixture(params=[Account, Badge, Employee])
    def given(self, request, employee):
        return request.param.objects.last()

    def test_is_crossed_by_an_event(self, given, employee):
        assert employee.pk != employee.number

        emission = emit("published", given, key="1")

        assert {run.entity_ref for run in emission.started} == {
            ("testapp.account", str(employee.pk)),
            ("testapp.employee", str(employee.pk)),
            ("testapp.badge", str(employee.number)),
        }
        assert Event.objects.get().entity_ref == ("testapp.account", str(employee.pk))
        assert not emit("published", employee.badge_ptr, key="1").recorded
        assert len(emit("unpublished", given).ended) == 3

    def test_is_crossed_by_questions_and_by_cancel_all(self, given, employee):
        emit("published", employee)
        emit("published", Badge.objects.first())

        assert ScheduledTask.objects.for_entity(given).count() == 3
        assert len(cancel_all(given, reason="enough")) == 3
        assert ScheduledTask.objects.open().count() == 1

    def test_leads_nowhere_where_there_is_no_child(self, employee):
        alone = Badge.objects.first()

        assert names_of(EntityRef("testapp.badge", str(alone.pk)), using="default") == (
            EntityRef("testapp.badge", str(alone.pk)),
        )

    @pytest.mark.parametrize("key", ["no number", "9" * 30, "", "٣"])
    def test_is_no_error_with_a_key_that_is_none(self, employee, key):
        assert not ScheduledTask.objects.for_entity(EntityRef("testapp.badge", key))

    def test_takes_one_query_for_any_number(self, clock, django_assert_num_queries):
        refs = [EntityRef("testapp.badge", str(Employee.objects.create().number)) for _ in range(10)]

        with django_assert_num_queries(2):  # To the employee, and back.
            assert {len(names) for names in kin_of(refs, using="default").values()} == {5}


class TestADiamond:
    @pytest.fixture(autouse=True)
    def _known(self, clock):
        with only_timelines(Voyage, Flight):
            yield

    @pytest.fixture
    def seaplane(self, clock, in_a_week):
        return Seaplane.objects.create(leaves_at=in_a_week)

    @pytest.mark.parametrize("model", [Vessel, Ship, Plane, Seaplane])
    def test_is_one_entity_by_all_ways(self, seaplane, model):
        emit("published", model.objects.get())

        key = str(seaplane.pk)
        assert open_runs() == [("flight", "testapp.plane", key), ("voyage", "testapp.vessel", key)]
        assert ScheduledTask.objects.for_entity(model.objects.get()).count() == 2
        assert Event.objects.get().entity_ref == ("testapp.vessel", key)
        assert len(emit("unpublished", model.objects.get()).ended) == 2

    def test_knows_a_ship_that_does_not_fly(self, clock):
        ship = Ship.objects.create()

        emit("published", ship)

        assert open_runs() == [("voyage", "testapp.vessel", str(ship.pk))]


@pytest.mark.only_postgresql  # SQLite locks no rows.
class TestLocks:
    @pytest.mark.parametrize("lock", [lock_entities, lock_rows])
    def test_take_the_root_before_its_children_whichever_names_are_given(self, clock, lock, django_assert_num_queries):
        first, second = Customer.objects.create(), Employee.objects.create()
        refs = [EntityRef("testapp.employee", str(second.pk)), EntityRef("testapp.customer", str(first.pk))]

        with django_assert_num_queries(3) as asked:
            lock(refs, using="default")

        statements = [each["sql"] for each in asked]
        assert not any(name in statements[0] for name in ("testapp_customer", "testapp_employee"))
        assert "testapp_account" in statements[0]

    def test_take_no_statement_more_where_one_name_is_given(self, clock, django_assert_num_queries):
        refs = [EntityRef("testapp.customer", str(Customer.objects.create().pk)) for _ in range(3)]

        with django_assert_num_queries(1):
            lock_rows(refs, using="default")
