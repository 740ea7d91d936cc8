"""Multi-table inheritance: a customer is an account, and a timeline about accounts is about customers too."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Account, Badge, Customer, Employee, EmployeeProxy, Order, Reseller
from timeline import Timeline, after, at, created, task
from timeline.exceptions import WrongEntity
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, foreseen, leave, preview, reconcile, schedule, start
from timeline.testing import expect, only_timelines


class Contract(Timeline):
    """About accounts."""

    entity = "testapp.Account"
    starts_on = "account.opened"
    exits = {"account.closed": "closed"}

    @task(at("ends_at"))
    def end(self, account: Account) -> str:
        return type(account).__name__

    @task(after(end, days=1))
    def archive(self, account: Account) -> None: ...

    @task()
    def call(self, account: Account) -> None: ...


class Welcome(Timeline):
    """Starts with each new account."""

    entity = "testapp.Account"
    starts_on = created()

    @task(after(days=1))
    def greet(self, account: Account) -> None: ...


class Care(Timeline):
    """About customers."""

    entity = "testapp.Customer"
    starts_on = created()

    @task(at("visits_at"))
    def visit(self, customer: Customer) -> None: ...

    @task(after("ends_at", days=1))
    def ask(self, customer: Customer) -> None: ...


class Pass(Timeline):
    """About badges."""

    entity = "testapp.Badge"

    @task(at("valid_until"))
    def expire(self, badge: Badge) -> str:
        return str(badge.number)


@pytest.fixture
def in_a_week(clock):
    return clock.now + timedelta(days=7)


@pytest.fixture(params=[Customer, Reseller])
def child(request, clock, in_a_week):
    """A child, or a grandchild, of accounts."""
    return request.param.objects.create(ends_at=in_a_week)


@pytest.fixture
def _contract():
    with only_timelines(Contract):
        yield


@pytest.mark.usefixtures("_contract")
class TestAChild:
    def test_is_the_entity_of_its_parents_timeline(self, child, clock, in_a_week):
        emit("account.opened", child)

        assert Event.objects.get().entity_ref == ("testapp.account", str(child.pk))
        expect(child).scheduled("contract.end", at=in_a_week).foreseen("archive")
        assert clock.run_next().result == "Account"

    def test_moves_its_parents_rows_when_it_is_saved(self, child, in_a_week):
        emit("account.opened", child)

        child.ends_at = in_a_week + timedelta(days=2)
        child.save()

        expect(child).scheduled("end", at=child.ends_at)

    def test_moves_them_when_just_the_date_is_saved(self, child, in_a_week):
        emit("account.opened", child)

        child.ends_at = in_a_week + timedelta(days=2)
        child.save(update_fields=["ends_at"])

        expect(child).scheduled("end", at=child.ends_at)

    def test_moves_none_when_another_field_is_saved(self, child, in_a_week):
        emit("account.opened", child)

        child.ends_at, child.note = in_a_week + timedelta(days=2), "x"
        child.save(update_fields=["note"])

        expect(child).scheduled("end", at=in_a_week)

    def test_cancels_its_parents_rows_when_it_is_deleted(self, child):
        emit("account.opened", child)

        child.delete()

        assert TimelineRun.objects.get().end_reason == "the entity was deleted"
        assert ScheduledTask.objects.get().reason_code == "entity_gone"

    def test_leaves_them_when_its_parent_stays(self, child):
        emit("account.opened", child)

        child.delete(keep_parents=True)

        assert TimelineRun.objects.get().is_open

    def test_is_taken_by_every_verb(self, child, clock, in_a_week):
        run = start(Contract, child).run
        made = schedule("contract.call", child, at=clock.now).task
        Account.objects.update(ends_at=in_a_week + timedelta(days=2))
        reconcile(child)

        assert made.entity_ref == run.entity_ref == ("testapp.account", str(child.pk))
        assert ScheduledTask.objects.for_entity(child).count() == 2
        expect(child).scheduled("end", at=in_a_week + timedelta(days=2))
        assert [item.task_key for item in foreseen(child)] == ["contract.archive"]
        assert len(preview(Contract, child)) == 2
        assert leave(Contract, child, reason="left") == run

    def test_asks_nothing_more_of_the_database_when_nothing_follows(self, clock, django_assert_num_queries):
        with only_timelines(), django_assert_num_queries(2):
            Customer.objects.create()


class TestANewChild:
    def test_starts_what_starts_with_its_parent(self, clock):
        with only_timelines(Welcome, Care):
            customer = Customer.objects.create()

        assert set(TimelineRun.objects.values_list("timeline", "entity_label", "entity_id")) == {
            ("welcome", "testapp.account", str(customer.pk)),
            ("care", "testapp.customer", str(customer.pk)),
        }

    def test_of_an_account_that_is_there_starts_its_own_only(self, clock):
        with only_timelines():
            account = Account.objects.create(note="long ago")
        with only_timelines(Welcome, Care):
            Customer(account_ptr=account, note="long ago").save()

        assert TimelineRun.objects.get().timeline == "care"
        assert Account.objects.count() == 1

    @pytest.mark.parametrize("by", ["copy", "copy without a link", "key of the account", "key, for a grandchild"])
    def test_of_an_account_that_is_there_is_known_however_it_is_made(self, clock, by, in_a_week):
        with only_timelines(Welcome, Contract):
            account = Account.objects.create(ends_at=in_a_week)
            leave(Welcome, account, reason="knows us")
            start(Contract, account)
            moved = Account(pk=account.pk, ends_at=in_a_week + timedelta(days=2))
            child = {
                "copy": lambda: Customer(account_ptr_id=account.pk),
                "copy without a link": Customer,
                "key of the account": lambda: Customer(id=account.pk),
                "key, for a grandchild": lambda: Reseller(id=account.pk),
            }[by]()
            if by.startswith("copy"):
                child.__dict__.update(Account.objects.get().__dict__)
            child.ends_at = moved.ends_at

            child.save()

            assert Account.objects.count() == 1
            assert set(TimelineRun.objects.values_list("timeline", flat=True)) == {"welcome", "contract"}
            assert TimelineRun.objects.count() == 2
            expect(account).scheduled("end", at=moved.ends_at)

    def test_of_a_second_parent_that_is_there_is_known_by_its_key(self, clock):
        class Issue(Timeline):
            entity = "testapp.Badge"
            starts_on = created()

            @task(after(days=1))
            def print(self, badge: Badge) -> None: ...

        with only_timelines(Issue):
            badge = Badge.objects.create()
            leave(Issue, badge, reason="printed")
            Employee(number=badge.pk).save()

        assert TimelineRun.objects.count() == 1

    def test_of_an_account_that_is_there_moves_its_rows(self, clock, in_a_week):
        account = Account.objects.create(ends_at=in_a_week)
        with only_timelines(Contract):
            start(Contract, account)

            Customer(account_ptr=account, ends_at=in_a_week + timedelta(days=2)).save()

            expect(account).scheduled("end", at=in_a_week + timedelta(days=2))

    def test_of_a_customer_that_is_there_starts_its_own_only(self, clock):
        with only_timelines():
            customer = Customer.objects.create()
        with only_timelines(Welcome, Care):
            Reseller(customer_ptr=customer).save()

        assert not TimelineRun.objects.exists()

    def test_with_a_key_of_its_own_choice_starts_both(self, clock):
        with only_timelines(Welcome, Care):
            Customer.objects.create(pk=4711)

        assert {run.timeline for run in TimelineRun.objects.all()} == {"welcome", "care"}


class TestAChildWithATimelineOfItsOwn:
    @pytest.fixture
    def customer(self, clock, in_a_week):
        with only_timelines(Contract, Care):
            yield Customer.objects.create(ends_at=in_a_week, visits_at=in_a_week)

    @pytest.mark.parametrize("by", ["child", "parent"])
    def test_shares_its_events_with_its_parent(self, customer, by):
        emit("account.opened", customer if by == "child" else customer.account_ptr)

        assert Event.objects.get().entity_ref == ("testapp.account", str(customer.pk))
        expect(customer).open("contract.end", "care.visit", "care.ask")
        expect(customer.account_ptr).open("contract.end", "care.visit", "care.ask")

    def test_is_named_as_the_timeline_names_it_where_one_is_given(self, customer, clock):
        run = start(Contract, customer).run
        made = schedule("contract.call", customer, at=clock.now).task

        assert run.entity_ref == made.entity_ref == ("testapp.account", str(customer.pk))
        assert [item.task_key for item in preview(Contract, customer)] == ["contract.end", "contract.archive"]
        assert leave(Contract, customer, reason="left") == run

    def test_moves_the_rows_of_both_when_it_is_saved(self, customer, in_a_week):
        start(Contract, customer)

        customer.ends_at, customer.visits_at = in_a_week + timedelta(days=1), in_a_week + timedelta(days=2)
        customer.save()

        expect(customer).scheduled("visit", at=customer.visits_at).scheduled("ask", at=in_a_week + timedelta(days=2))
        expect(customer.account_ptr).scheduled("end", at=customer.ends_at)

    @pytest.mark.parametrize("by", ["child", "parent"])
    def test_ends_both_when_it_is_deleted(self, customer, by):
        start(Contract, customer)

        (customer if by == "child" else Account.objects.get()).delete()

        assert not TimelineRun.objects.open().exists()
        assert not ScheduledTask.objects.open().exists()

    def test_is_not_meant_by_what_is_no_child(self, customer, clock):
        with pytest.raises(WrongEntity):
            start(Care, Account.objects.create())
        with pytest.raises(WrongEntity):
            schedule("contract.call", Order.objects.create(), at=clock.now)


class TestAParentThatIsSaved:
    @pytest.fixture
    def customer(self, clock, in_a_week):
        with only_timelines(Care):
            yield Customer.objects.create(ends_at=in_a_week)

    @pytest.mark.parametrize("fields", [None, ["ends_at"]])
    def test_moves_the_rows_of_its_child(self, customer, in_a_week, fields):
        account = Account.objects.get()
        account.ends_at = in_a_week + timedelta(days=2)
        account.save(update_fields=fields)

        expect(customer).scheduled("ask", at=in_a_week + timedelta(days=3))

    def test_moves_those_of_its_grandchild(self, clock, in_a_week):
        class Bonus(Timeline):
            entity = "testapp.Reseller"

            @task(at("ends_at"))
            def pay(self, reseller: Reseller) -> None: ...

        with only_timelines(Bonus):
            reseller = Reseller.objects.create(ends_at=in_a_week)
            start(Bonus, reseller)
            account = Account.objects.get()
            account.ends_at += timedelta(days=2)
            account.save()

            expect(reseller).scheduled("pay", at=account.ends_at)

    def test_asks_for_no_child_when_it_saved_none_of_its_fields(self, customer, django_assert_num_queries):
        account = Account.objects.get()

        with django_assert_num_queries(1):
            account.save(update_fields=["note"])

    def test_leaves_the_children_of_others(self, customer, in_a_week):
        other = Account.objects.create()
        other.ends_at = in_a_week + timedelta(days=2)
        other.save()

        expect(customer).scheduled("ask", at=in_a_week + timedelta(days=1))


class TestAChildOfTwoParents:
    @pytest.fixture
    def employee(self, clock, in_a_week):
        Badge.objects.create()  # So that the keys of the parents differ.
        with only_timelines(Contract, Pass):
            yield Employee.objects.create(ends_at=in_a_week, valid_until=in_a_week)

    def test_goes_by_the_key_of_the_parent_in_question(self, employee, clock):
        assert employee.pk != employee.number

        run = start(Pass, employee).run

        assert run.entity_ref == ("testapp.badge", str(employee.number))
        assert clock.run_next().result == str(employee.number)

    @pytest.mark.parametrize("model", [Employee, EmployeeProxy])
    def test_moves_the_rows_of_both_parents(self, employee, in_a_week, model):
        start(Contract, employee)
        start(Pass, employee)

        again = model.objects.get()
        again.ends_at, again.valid_until = in_a_week + timedelta(days=1), in_a_week + timedelta(days=2)
        again.save()

        expect(employee.account_ptr).scheduled("end", at=again.ends_at)
        expect(employee.badge_ptr).scheduled("expire", at=again.valid_until)

    def test_cancels_the_rows_of_both_when_it_is_deleted(self, employee):
        start(Contract, employee)
        start(Pass, employee)

        employee.delete()

        assert {run.end_reason for run in TimelineRun.objects.all()} == {"the entity was deleted"}
        assert TimelineRun.objects.count() == 2
