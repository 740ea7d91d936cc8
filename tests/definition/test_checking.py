"""Every mistake in a declaration, and what is said of it: class, method where there is one, remedy."""

from datetime import timedelta
from types import SimpleNamespace, new_class

import pytest
from django.db.models import Q

from tests.testapp.models import Order, Parcel, Seat
from timeline.definition import Retry, Timeline, created, task
from timeline.definition.check_timelines import MAX_EVENT, MAX_EXPIRES, OPTIONS
from timeline.definition.context import RESERVED, VERBS
from timeline.definition.model_fit import check_model
from timeline.definition.names import MAX_NAME
from timeline.exceptions import DefinitionError
from timeline.timing import after, at, before, every


def is_paid(order):
    return order.paid


def handler(self, order):
    return None


def for_system(self):
    return None


async def asynchronous(self, order):
    return None


def method(name, when=None, function=handler, **options):
    """Decorate a copy of the function that has the name it is given."""

    def named(self, order):
        return function(self, order)

    named.__name__ = name
    return task(when, **options)(named)


def declare(base=Timeline, **body):
    return new_class("Wrong", (base,), exec_body=lambda namespace: namespace.update(body))


def declare_task(declared, **body):
    return declare(**{"entity": "testapp.Order", declared.name: declared, **body})


def mistake(**body):
    """Declare it and give back the error, which must be there and complete."""
    with pytest.raises(DefinitionError) as caught:
        declare(**body)
    assert_complete(caught.value)
    return caught.value


def task_mistake(declared, **body):
    with pytest.raises(DefinitionError) as caught:
        declare_task(declared, **body)
    assert_complete(caught.value)
    return caught.value


def assert_complete(error):
    where = f"Wrong.{error.method}" if error.method else "Wrong"
    assert error.timeline == "Wrong"
    assert str(error) == f"{where}: {error.problem} {error.remedy}"
    assert error.problem.endswith(".")
    assert error.remedy


class TestCheckNames:
    @pytest.mark.parametrize("name", sorted(RESERVED))
    @pytest.mark.parametrize(
        "value", [3, None, for_system, property(for_system)], ids=["number", "None", "function", "property"]
    )
    def test_refuses_an_attribute_that_hides_what_a_handler_reads(self, name, value):
        error = mistake(**{"go": task(after(days=1))(for_system), name: value})

        assert error.method == name
        assert "handler reads from self" in error.problem
        assert name in error.remedy

    @pytest.mark.parametrize("name", sorted(RESERVED))
    def test_refuses_a_task_that_hides_what_a_handler_reads(self, name):
        error = task_mistake(method(name, after(days=1)))

        assert error.method == name
        assert "handler reads from self" in error.problem

    @pytest.mark.parametrize("name", sorted(VERBS))
    def test_refuses_what_hides_what_a_handler_calls(self, name):
        for error in (task_mistake(method(name, after(days=1))), mistake(**{name: 3})):
            assert error.method == name
            assert "handler calls on self" in error.problem

    @pytest.mark.parametrize("name", sorted(OPTIONS))
    def test_refuses_a_task_that_hides_an_option_of_the_class(self, name):
        error = mistake(**{name: method(name, after(days=1))})

        assert error.method == name
        assert "name of an option" in error.problem
        assert name in error.remedy

    def test_knows_all_options_of_the_class(self):
        """But for those that came later than tasks of their names."""
        assert {name for name in Timeline.__annotations__ if name[0] != "_"} == OPTIONS | {
            "once",
            "key",
            "again",
            "search",
            "titles",
        }

    @pytest.mark.parametrize("name", ["once", "key", "again"])
    def test_takes_a_task_that_was_called_so_before_there_was_the_option(self, name):
        declared = type("Any", (Timeline,), {"entity": "testapp.Order", name: method(name, after(days=1))}).definition

        assert list(declared.tasks) == [name]
        assert (declared.once, declared.key, declared.again) == (False, (), False)

    def test_refuses_a_definition_of_ones_own(self):
        assert mistake(definition="mine").method == "definition"

    @pytest.mark.parametrize("name", ["now", "name"])
    def test_looks_at_a_class_that_lends_its_tasks_too(self, name):
        with pytest.raises(DefinitionError, match=rf"Lender\.{name}: "):
            new_class(
                "Lender", (Timeline,), {"abstract": True}, lambda body: body.update({name: method(name, after(days=1))})
            )

    def test_looks_at_a_class_that_is_no_timeline_too(self):
        class Mixin:
            run = 3

        with pytest.raises(DefinitionError, match=r"Wrong\.run: "):
            new_class("Wrong", (Mixin, Timeline), exec_body=lambda body: body.update(go=task()(for_system)))

    def test_takes_another_class_to_declare_from(self):
        """Its definition is no mistake."""
        base = declare_task(method("go", after(days=1)))

        assert list(declare(base).definition.tasks) == ["go"]

    def test_refuses_a_method_decorated_without_parentheses(self):
        error = mistake(go=task(for_system), other=task()(for_system))

        assert error.method == "go"
        assert "without parentheses" in error.problem
        assert "@task()" in error.remedy


class TestCheckShapeOfTheClass:
    @pytest.mark.parametrize("name", ["Trial", "free trial", "free-trial", "2days", "_trial", "ü", "x" * 51, "a\n", 3])
    def test_refuses_a_name_that_is_none(self, name):
        assert f"has the name {name!r}" in mistake(name=name, go=task()(for_system)).problem

    def test_takes_the_longest_name(self):
        name = "x" * MAX_NAME

        assert declare(name=name, for_system=task()(for_system)).definition.name == name

    @pytest.mark.parametrize("entity", ["Order", "a.b.c", "testapp.", ".Order", "", 3, Order])
    def test_refuses_an_entity_that_names_no_model(self, entity):
        error = mistake(entity=entity, go=task()(handler))

        assert "has entity = " in error.problem
        assert '"app.Model"' in error.remedy

    def test_refuses_a_class_without_tasks(self):
        error = mistake(entity="testapp.Order")

        assert error.problem == "declares no task."
        assert "abstract=True" in error.remedy

    @pytest.mark.parametrize("start", ["", "two words", "x" * (MAX_EVENT + 1), 3, None, ["order.placed"], ("a", 3)])
    def test_refuses_a_start_that_is_no_event(self, start):
        error = task_mistake(method("go", after(days=1)), starts_on=start)

        assert "has starts_on = " in error.problem

    def test_refuses_created_without_an_entity(self):
        assert "has no entity" in mistake(starts_on=created(), go=task()(for_system)).problem

    @pytest.mark.parametrize("start", ["x" * MAX_EVENT, "x", created(), ("order.placed", created()), ()])
    def test_takes_events_and_created(self, start):
        declared = declare_task(method("go", after(days=1)), starts_on=start)

        assert declared.definition.starts_on == (start if isinstance(start, tuple) else (start,))

    @pytest.mark.parametrize("exits", [None, "order.paid", ["order.paid"], {"order.paid"}])
    def test_refuses_exits_that_are_no_dict(self, exits):
        assert "has exits = " in task_mistake(method("go", after(days=1)), exits=exits).problem

    @pytest.mark.parametrize("event", ["", "two words", "x" * (MAX_EVENT + 1), 3])
    def test_refuses_an_exit_on_what_is_no_event(self, event):
        error = task_mistake(method("go", after(days=1)), exits={"order.paid": "paid", event: "done"})

        assert f"has an exit on {event!r}" in error.problem

    @pytest.mark.parametrize("name", ["", None, 3, "x" * (MAX_NAME + 1)])
    def test_refuses_an_exit_without_a_name_of_its_own(self, name):
        error = task_mistake(method("go", after(days=1)), exits={"order.paid": name})

        assert f"calls an exit {name!r}" in error.problem
        assert f"1 to {MAX_NAME} characters" in error.remedy

    @pytest.mark.parametrize("name", ["x", "x" * MAX_NAME, "Paid in full", "finished"])
    def test_takes_exits_with_a_name(self, name):
        assert declare_task(method("go"), exits={"order.paid": name}).definition.exits == {"order.paid": name}

    @pytest.mark.parametrize("shadow", ["False", "", 0, 1, None])
    def test_refuses_a_shadow_that_is_no_bool(self, shadow):
        """Text from the environment is true whatever it says."""
        error = mistake(go=task()(for_system), shadow=shadow)

        assert error.problem == f"has shadow = {shadow!r}."
        assert "True or False" in error.remedy

    @pytest.mark.parametrize("option", ["time_zone", "language"])
    def test_refuses_an_option_that_needs_an_entity(self, option):
        error = mistake(**{option: "zone", "go": task()(for_system)})

        assert f"has {option}, but no entity" in error.problem

    @pytest.mark.parametrize("option", ["time_zone", "language"])
    @pytest.mark.parametrize("value", [3, is_paid])
    def test_refuses_an_option_that_is_no_text(self, option, value):
        error = task_mistake(method("go", after(days=1)), **{option: value})

        assert f"has {option} = {value!r}" in error.problem


class TestCheckShapeOfATask:
    @pytest.mark.parametrize("name", ["Remind", "_remind", "ümlaut", "x" * (MAX_NAME + 1)])
    def test_refuses_a_name_that_is_none(self, name):
        error = task_mistake(method(name, after(days=1)))

        assert (error.method, error.problem) == (name, "is no name for a task.")

    def test_refuses_one_task_under_two_names(self):
        go = method("go", after(days=1))

        error = task_mistake(go, again=go)

        assert (error.method, error.problem) == ("again", "is the task 'go' under another name.")

    def test_refuses_what_is_no_plain_method(self):
        error = mistake(entity="testapp.Order", handler=task(after(days=1))(staticmethod(handler)))

        assert (error.method, error.problem) == ("handler", "is not a plain method.")

    def test_refuses_an_async_handler_that_is_atomic(self):
        error = mistake(entity="testapp.Order", asynchronous=task(after(days=1))(asynchronous))

        assert (error.method, error.problem) == ("asynchronous", "is async and atomic.")

    def test_takes_an_async_handler_that_is_not(self):
        taken = declare(entity="testapp.Order", asynchronous=task(after(days=1), atomic=False)(asynchronous))

        assert taken.definition.tasks["asynchronous"].is_async

    def test_refuses_an_async_handler_of_many(self):
        error = mistake(entity="testapp.Order", asynchronous=task(after(days=1), atomic=False, bulk=9)(asynchronous))

        assert (error.method, error.problem) == ("asynchronous", "is async and takes many entities.")

    @pytest.mark.parametrize("atomic", ["yes", "savepoint", None, 1, ""])
    def test_refuses_an_atomic_it_does_not_know(self, atomic):
        error = mistake(entity="testapp.Order", handler=task(after(days=1), atomic=atomic)(handler))

        assert (error.method, error.problem) == ("handler", f"has atomic = {atomic!r}.")

    def test_refuses_a_call_for_many_that_shares_its_transaction(self):
        error = mistake(entity="testapp.Order", handler=task(after(days=1), atomic="shared", bulk=9)(handler))

        assert (error.method, error.problem) == ("handler", "has bulk, and shares its transaction.")

    def test_refuses_a_call_for_many_that_asks_for_what_it_has(self):
        error = mistake(entity="testapp.Order", handler=task(after(days=1), atomic="own", bulk=9)(handler))

        assert (error.method, error.problem) == ("handler", "has bulk, and a transaction of its own.")

    @pytest.mark.parametrize("atomic", [True, False, "shared", "own"])
    def test_takes_an_atomic_that_it_knows(self, atomic):
        taken = declare(entity="testapp.Order", handler=task(atomic=atomic)(handler)).definition.tasks["handler"]

        assert taken.options.atomic == atomic

    @pytest.mark.parametrize("bulk", [0, -1, 1_001, 2.5, "9", True])
    def test_refuses_a_bulk_that_is_no_number_of_entities(self, bulk):
        error = mistake(entity="testapp.Order", handler=task(after(days=1), bulk=bulk)(handler))

        assert (error.method, error.problem) == ("handler", f"has bulk = {bulk!r}.")

    @pytest.mark.parametrize("bulk", [None, 1, 1_000])
    def test_takes_a_bulk_that_is(self, bulk):
        assert (
            declare(entity="testapp.Order", handler=task(bulk=bulk)(handler)).definition.tasks["handler"].at_once
            == bulk
        )

    def test_refuses_bulk_without_an_entity(self):
        error = mistake(for_system=task(after(days=1), bulk=9)(for_system))

        assert (error.method, error.problem) == ("for_system", "has bulk, but no entity to take many of.")

    @pytest.mark.parametrize("option", ["only_if", "unless"])
    def test_refuses_an_async_guard(self, option):
        async def guard(order):
            return True

        error = mistake(entity="testapp.Order", handler=task(after(days=1), **{option: guard})(handler))

        assert (error.method, error.problem) == ("handler", f"has an async {option}.")

    def test_refuses_a_handler_that_takes_no_entity(self):
        error = mistake(entity="testapp.Order", for_system=task(after(days=1))(for_system))

        assert "takes other arguments" in error.problem
        assert error.remedy == "A handler takes self and the entity: def for_system(self, order)."

    def test_refuses_a_handler_that_takes_an_entity_there_is_not(self):
        error = mistake(handler=task(after(days=1))(handler))

        assert "takes other arguments" in error.problem
        assert error.remedy == "A handler takes self alone, as the timeline has no entity: def handler(self)."

    def test_refuses_a_handler_that_takes_more(self):
        def two(self, order, other):
            return None

        def keyword(self, order, *, other):
            return None

        for function in (two, keyword):
            error = mistake(entity="testapp.Order", **{function.__name__: task(after(days=1))(function)})

            assert (error.method, error.problem) == (
                function.__name__,
                "takes other arguments than it is called with.",
            )

    def test_takes_a_handler_whose_further_arguments_have_defaults(self):
        def go(self, order, note="", *rest, **more):
            return note

        assert list(declare_task(task(after(days=1))(go)).definition.tasks) == ["go"]

    @pytest.mark.parametrize("when", ["ships_at", timedelta(days=1), 3])
    def test_refuses_a_schedule_that_is_none(self, when):
        error = task_mistake(method("go", when))

        assert error.method == "go"
        assert f"has the schedule {when!r}" in error.problem

    @pytest.mark.parametrize(
        ("when", "problem"),
        [
            (after(days=-1), "negative distance"),
            (after(days=1.5), "not a whole number"),
            (before("ships_at"), "without a distance"),
            (before(3, days=1), "counts back from a field"),
            (at("ships at"), "not the name of a field"),
            (after(3), "without a unit"),
            (after(Retry()), "names no anchor"),
        ],
    )
    def test_reports_what_is_wrong_with_a_schedule(self, when, problem):
        error = task_mistake(method("go", when))

        assert error.method == "go"
        assert problem in error.problem

    def test_refuses_a_field_where_there_is_no_entity(self):
        error = mistake(for_system=task(at("ships_at"))(for_system))

        assert "anchored to the field 'ships_at', but there is no entity" in error.problem
        assert error.remedy == "Count from the run's start."

    def test_asks_for_the_task_that_is_named_where_there_is_no_entity(self):
        error = mistake(for_system=task(after("for_system", days=1))(for_system))

        assert "write it without quotes: after(for_system, …)" in error.remedy

    def test_refuses_to_follow_a_task_of_another_class(self):
        elsewhere = method("elsewhere", after(days=1))

        error = task_mistake(method("go", after(elsewhere)))

        assert (error.method, error.problem) == (
            "go",
            "follows 'elsewhere', which is not a task of this timeline.",
        )

    def test_refuses_to_follow_a_task_that_was_removed(self):
        first = method("first", after(days=1))
        base = declare_task(first, second=method("second", after(first)))

        with pytest.raises(DefinitionError, match=r"Wrong\.second: follows 'first', which is not a task"):
            declare(base, first=None)

    def test_refuses_to_follow_itself(self):
        error = task_mistake(method("go", after(SimpleNamespace(name="go"))))

        assert (error.method, error.problem) == ("go", "follows itself by way of 'go'.")

    def test_refuses_to_follow_in_a_circle(self):
        first = method("first", after(days=1))
        second = method("second", after(first))
        third = method("third", after(second))
        base = declare_task(first, second=second, third=third)

        with pytest.raises(DefinitionError, match="follows itself by way of"):
            declare(base, first=method("first", after(third)))

    def test_refuses_to_follow_into_a_circle(self):
        first = method("first", after(SimpleNamespace(name="second")))
        second = method("second", after(first))

        error = task_mistake(method("go", after(first)), first=first, second=second)

        assert (error.method, error.problem) == ("go", "follows itself by way of 'first'.")

    def test_refuses_to_follow_a_task_without_a_schedule(self):
        first = method("first")

        error = task_mistake(first, second=method("second", after(first)))

        assert (error.method, error.problem) == ("second", "follows 'first', which has no schedule.")

    def test_takes_a_long_chain(self):
        tasks = [method("t0", after(days=1))]
        for number in range(1, 30):
            tasks.append(method(f"t{number}", after(tasks[-1])))

        assert len(declare_task(tasks[0], **{each.name: each for each in tasks}).definition.tasks) == 30

    @pytest.mark.parametrize("option", ["only_if", "unless"])
    @pytest.mark.parametrize("guard", ["paid", True, {"paid": True}])
    def test_refuses_a_guard_that_can_not_be_asked(self, option, guard):
        error = task_mistake(method("go", after(days=1), **{option: guard}))

        assert error.problem == f"has {option} = {guard!r}."

    @pytest.mark.parametrize("option", ["only_if", "unless"])
    @pytest.mark.parametrize("guard", [is_paid, Q(paid=True)])
    def test_refuses_a_guard_where_there_is_no_entity(self, option, guard):
        error = mistake(for_system=task(after(days=1), **{option: guard})(for_system))

        assert error.method == "for_system"
        assert f"has {option}, but no entity" in error.problem

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"retry": 3}, "has retry = 3."),
            ({"retry": Retry(max_attempts=0)}, "retry has max_attempts=0."),
            ({"retry": Retry(base=15)}, "retry has base=15, which is no timedelta."),
            ({"expires": 3}, "has expires = 3."),
            ({"timeout": 3}, "has timeout = 3."),
            ({"timeout": timedelta(0)}, "has timeout = datetime.timedelta(0)."),
            ({"timeout": timedelta(seconds=-1)}, "has timeout = datetime.timedelta(days=-1, seconds=86399)."),
            ({"expires": timedelta(0)}, "has expires = datetime.timedelta(0)."),
            ({"expires": MAX_EXPIRES + timedelta(1)}, "has expires = datetime.timedelta(days=36526)."),
            ({"priority": 1.5}, "has priority = 1.5."),
            ({"priority": True}, "has priority = True."),
            ({"priority": 32768}, "has priority = 32768."),
            ({"priority": -32769}, "has priority = -32769."),
            ({"queue": ""}, "has queue = ''."),
            ({"queue": None}, "has queue = None."),
            ({"queue": "x" * (MAX_NAME + 1)}, f"has queue = {'x' * (MAX_NAME + 1)!r}."),
        ],
    )
    def test_refuses_an_option_that_is_out_of_bounds(self, options, problem):
        error = task_mistake(method("go", after(days=1), **options))

        assert (error.method, error.problem) == ("go", problem)

    @pytest.mark.parametrize(
        "options",
        [
            {"retry": Retry(max_attempts=1)},
            {"expires": timedelta(microseconds=1)},
            {"timeout": timedelta(microseconds=1)},
            {"timeout": timedelta(days=2)},
            {"expires": MAX_EXPIRES},
            {"priority": 32767},
            {"priority": -32768},
            {"queue": "x" * MAX_NAME},
            {"queue": "q"},
            {"only_if": is_paid, "unless": Q(paid=False)},
            {"atomic": False},
        ],
    )
    def test_takes_an_option_within_its_bounds(self, options):
        [declared] = declare_task(method("go", after(days=1), **options)).definition.tasks.values()

        assert {name: getattr(declared.options, name) for name in options} == options


class TestCheckModel:
    def problem(self, declared, model=Order, **body):
        cls = declare_task(declared, **body)
        with pytest.raises(DefinitionError) as caught:
            check_model(cls.definition, model)
        assert_complete(caught.value)
        return caught.value

    @pytest.mark.parametrize("field", ["ships_at", "due_on"])
    def test_takes_a_date_or_datetime_field(self, field):
        check_model(declare_task(method("go", at(field))).definition, Order)

    def test_refuses_a_field_the_entity_does_not_have(self):
        error = self.problem(method("go", at("sent_at")))

        assert (error.method, error.problem) == (
            "go",
            "is anchored to 'sent_at', which testapp.order does not have.",
        )

    def test_asks_for_the_task_that_a_field_is_called_like(self):
        error = self.problem(method("go", after("go", days=1)))

        assert error.remedy == "If the task is meant, write it without quotes: after(go, …). It has to stand above."

    def test_refuses_a_field_of_another_model(self):
        assert (
            "'ships_at', which testapp.order does not have"
            in self.problem(method("go", at("ships_at")), Parcel).problem
        )

    @pytest.mark.parametrize(("field", "kind"), [("note", "CharField"), ("paid", "BooleanField"), ("id", "AutoField")])
    def test_refuses_a_field_that_holds_no_date(self, field, kind):
        error = self.problem(method("go", before(field, days=1)))

        assert error.method == "go"
        assert f"is anchored to {field!r}, a" in error.problem
        assert kind in error.problem

    @pytest.mark.parametrize("option", ["only_if", "unless"])
    @pytest.mark.parametrize(
        "guard",
        [
            pytest.param(Q(payed=True), id="unknown field"),
            pytest.param(Q(note__is="x"), id="unknown lookup"),
            pytest.param(Q(id="one"), id="wrong kind of value"),
            pytest.param(Q(id=object()), id="no value at all"),
            pytest.param(Q(paid="perhaps"), id="value the field refuses"),
            pytest.param(Q(ships_at="soon"), id="date the field refuses"),
        ],
    )
    def test_refuses_a_q_that_does_not_fit(self, option, guard):
        error = self.problem(method("go", after(days=1), **{option: guard}))

        assert error.method == "go"
        assert f"has a Q as {option} that does not fit testapp.order" in error.problem

    @pytest.mark.parametrize("guard", [Q(paid=True), ~Q(note="x") | Q(ships_at__isnull=True), Q(), is_paid])
    def test_takes_a_guard_that_fits(self, guard):
        check_model(declare_task(method("go", after(days=1), only_if=guard)).definition, Order)

    @pytest.mark.parametrize(("option", "field"), [("time_zone", "tz"), ("language", "lang")])
    def test_refuses_an_option_that_names_no_field(self, option, field):
        error = self.problem(method("go", after(days=1)), **{option: field})

        assert error.method == ""
        assert error.problem == f"{option} = {field!r}, which testapp.order does not have."

    @pytest.mark.parametrize(("option", "field"), [("time_zone", "zone"), ("language", "language"), ("language", "pk")])
    def test_takes_an_option_that_names_a_field_or_property(self, option, field):
        check_model(declare_task(method("go", after(days=1)), **{option: field}).definition, Order)


class TestForeignTasks:
    def test_are_not_followed_though_their_name_is_the_same(self):
        class Other(Timeline):
            @task(after(days=1))
            def begin(self): ...

        with pytest.raises(DefinitionError, match=r"Mine\.go_on: follows the 'begin' of another timeline\."):

            class Mine(Timeline):
                @task(after(days=1))
                def begin(self): ...

                @task(after(Other.begin, days=1))
                def go_on(self): ...

    def test_of_a_base_are_followed_also_where_they_were_overridden(self):
        class Base(Timeline, abstract=True):
            @task(after(days=1))
            def begin(self): ...

            @task(after(begin, days=1))
            def go_on(self): ...

        class Mine(Base):
            @task(after(days=2))
            def begin(self): ...

        assert Mine.definition.tasks["go_on"].when.predecessor_name == "begin"


class TestOtherDescriptors:
    @pytest.mark.parametrize("descriptor", [staticmethod, classmethod, property])
    def test_around_a_task_are_refused(self, descriptor):
        with pytest.raises(DefinitionError, match=r"Mine\.begin: has another descriptor"):

            class Mine(Timeline):
                begin = descriptor(task(after(days=1))(lambda self: None))


class TestOwner:
    @pytest.mark.parametrize("owner", ["plan.user", "plan"])
    def test_must_lead_to_a_user(self, owner):
        definition = declare_task(method("go", after(days=1)), entity="testapp.Seat", owner=owner).definition

        if owner == "plan.user":
            check_model(definition, Seat)
        else:
            with pytest.raises(DefinitionError, match="which does not lead from"):
                check_model(definition, Seat)

    @pytest.mark.parametrize("owner", ["id", "gone", "plan.gone", "plan.user.email", "plan..user", "plan__user"])
    def test_refuses_what_is_no_chain_of_foreign_keys(self, owner):
        definition = declare_task(method("go", after(days=1)), entity="testapp.Seat", owner=owner).definition

        with pytest.raises(DefinitionError, match="with dots between"):
            check_model(definition, Seat)

    def test_needs_an_entity(self):
        assert "no entity to read it from" in mistake(go=task()(for_system), owner="plan.user").problem


class TestRepeated:
    def test_needs_an_end(self):
        error = task_mistake(method("nudge", every(days=7)))

        assert "Wrong.nudge: is repeated without an end." in str(error)

    @pytest.mark.parametrize("given", [{"most": 3}, {"until": is_paid}, {"until": Q(paid=True)}])
    def test_takes_one(self, given):
        declare_task(method("nudge", every(days=7, **given)))

    def test_takes_an_exit_for_one(self):
        declare_task(method("nudge", every(days=7)), exits={"order.paid": "paid"})

    def test_says_what_is_wrong_with_its_times(self):
        assert "Wrong.nudge: has most = 0." in str(task_mistake(method("nudge", every(days=7, most=0))))

    @pytest.mark.parametrize("until", ["replied", 3, asynchronous])
    def test_refuses_what_does_not_tell_its_end(self, until):
        assert "until" in str(task_mistake(method("nudge", every(days=7, until=until))))

    def test_refuses_an_end_that_is_asked_of_no_entity(self):
        error = mistake(for_system=task(every(days=7, until=is_paid))(for_system))

        assert "has until, but no entity to ask it of." in str(error)

    def test_is_taken_of_the_system(self):
        declare(for_system=task(every(days=7, most=2))(for_system))

    def test_refuses_a_condition_that_does_not_fit_the_model(self):
        declared = declare_task(method("nudge", every(days=7, until=Q(nothing=1))))

        with pytest.raises(DefinitionError, match="has a Q as until that does not fit"):
            check_model(declared.definition, Order)
