"""Why there is no row is said, too: it is the question that newcomers ask most."""

import re
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from tests.testapp.models import Customer, Order
from timeline import Timeline, after, at, before, created, daily, task
from timeline.models import ref_of
from timeline.reading.outlook import empty_dates, why_no_tasks
from timeline.shortcuts import emit, leave, start
from timeline.testing import only_timelines


class Shipping(Timeline):
    """Counts from two dates."""

    entity = "testapp.Order"
    starts_on = "order.paid"

    @task(before("ships_at", days=2))
    def pack(self, order) -> None: ...

    @task(at("due_on"))
    def bill(self, order) -> None: ...


class Greeting(Timeline):
    """About users, so that one can be found by a name."""

    entity = "accounts.User"
    starts_on = created()

    @task(after(days=2))
    def greet(self, user) -> None: ...


class Nightly(Timeline):
    """About none."""

    starts_on = daily("02:00")

    @task(after())
    def report(self) -> None: ...


@pytest.fixture(autouse=True)
def _only_these(clock):
    with only_timelines(Shipping, Greeting, Nightly):
        yield


@pytest.fixture
def order(db):
    return Order.objects.create()


def why(entity):
    return why_no_tasks(ref_of(entity), using="default")


class TestWhyNoTasks:
    def test_names_the_dates_that_are_empty(self, order, clock):
        emit("order.paid", order)

        assert why(order) == (
            f"Its run of shipping is open since {clock.now:%Y-%m-%d %H:%M} UTC; empty is ships_at, due_on. "
            "A row is made as soon as it is set."
        )

    def test_says_how_a_run_ended(self, order, clock):
        start(Shipping, order)
        leave(Shipping, order, reason="wrong address")

        assert why(order) == f"Its run of shipping ended on {clock.now:%Y-%m-%d %H:%M} UTC: wrong address."

    def test_says_what_is_likely_where_no_run_has_begun(self, order):
        said = why(order)

        assert said.startswith("No run has begun for it. These would begin one:\n  shipping: order.paid\n")
        assert "bulk_create()" in said
        assert "Events" not in said

    def test_names_events_that_came_and_the_one_that_is_meant(self, order):
        emit("order.payed", order)

        said = why(order)

        assert "Events recorded about it: order.payed.\nPerhaps order.paid was meant.\n" in said

    def test_says_that_the_entity_is_not_there(self, order):
        ref = ref_of(order)
        order.delete()

        assert why_no_tasks(ref, using="default") == f"There is no {ref} in the database default."

    def test_says_that_no_timeline_is_about_it(self, db):
        assert why(Customer.objects.create()) == "No timeline is about testapp.customer."


class TestEmptyDates:
    def test_are_said_of_open_runs_alone(self, order):
        start(Shipping, order)

        [said] = empty_dates(ref_of(order), using="default")

        assert "empty is ships_at, due_on" in said
        leave(Shipping, order, reason="left")
        assert list(empty_dates(ref_of(order), using="default")) == []

    def test_are_only_those_that_are_empty(self, order, clock):
        order.due_on = (clock.now + timedelta(days=9)).date()
        order.ships_at = clock.now + timedelta(days=9)
        order.save()
        start(Shipping, order)

        assert list(empty_dates(ref_of(order), using="default")) == []


class TestTimelineExplain:
    def test_says_why_there_is_no_row(self, order):
        emit("order.paid", order)

        with pytest.raises(CommandError, match=re.escape("has no tasks.\nIts run of shipping is open since")):
            call_command("timeline_explain", "testapp.order", str(order.pk))

    def test_says_which_date_is_empty_beside_the_rows_that_there_are(self, order, clock, capsys):
        order.due_on = (clock.now + timedelta(days=9)).date()
        order.save()
        emit("order.paid", order)

        call_command("timeline_explain", "testapp.order", str(order.pk))

        shown = capsys.readouterr().out
        assert "shipping.bill" in shown
        assert "empty is ships_at. A row is made as soon as it is set." in " ".join(shown.split())

    def test_says_which_date_is_empty_also_where_one_task_is_asked_about(self, order):
        emit("order.paid", order)

        with pytest.raises(CommandError, match=r"(?s)has no tasks of shipping.pack\.\n.*empty is ships_at"):
            call_command("timeline_explain", "testapp.order", str(order.pk), "--task", "shipping.pack")

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (["testapp.ordr", "1"], "Did you mean 'testapp.order'?"),
            (["testapp.order", "{pk}", "--task", "bill"], "Did you mean 'shipping.bill'?"),
        ],
    )
    def test_says_which_name_is_meant(self, order, given, said):
        with pytest.raises(CommandError) as refused:
            call_command("timeline_explain", *(word.format(pk=order.pk) for word in given))

        assert said in str(refused.value)

    def test_explains_whom_a_name_finds(self, user, capsys):
        call_command("timeline_explain", "accounts.user", user.email.partition("@")[0])

        assert f"accounts.user {user.pk}\n" in capsys.readouterr().out
