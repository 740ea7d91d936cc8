"""Declaring a timeline."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

import pytest

from timeline.definition import Timeline, created, task
from timeline.definition.context import RESERVED
from timeline.definition.starts import Created
from timeline.exceptions import TimelineError
from timeline.timing import after, at, before

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


class Trial(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.paid": "paid"}

    @task(before("ships_at", days=5))
    def remind(self, order):
        return f"reminded {order} at {self.now:%H:%M}"

    @task(at("ships_at"))
    def expire(self, order):
        return f"expired {order}"

    @task(after(expire, days=2))
    def check(self, order):
        return self.expire(order)


class Newsletter(Timeline):
    entity = "testapp.Order"

    @task(after(days=1), bulk=100)
    def send(self, orders):
        return {order: f"{self.now:%H:%M}{' again' * self.tasks[order].lost}" for order in orders}

    @task(after(days=2), atomic=False)
    async def call(self, order):
        return f"called {order}"


class Lent(Timeline, abstract=True):
    entity = "testapp.Order"

    @task(after(days=1))
    def greet(self, order):
        return "hello"

    @task(after(greet, days=1))
    def follow(self, order):
        return "again"


class TestDefinition:
    def test_knows_what_was_declared(self):
        definition = Trial.definition

        assert definition.cls is Trial
        assert (definition.name, definition.label) == ("trial", "testapp.order")
        assert (definition.starts_on, definition.exits) == (("order.placed",), {"order.paid": "paid"})
        assert list(definition.tasks) == ["remind", "expire", "check"]

    def test_makes_task_keys(self):
        assert Trial.definition.task_key("remind") == "trial.remind"

    def test_knows_the_fields_that_tasks_are_anchored_to(self):
        assert Trial.definition.anchor_fields == {"ships_at"}

    def test_has_no_anchor_field_where_all_counts_from_starts_and_ends(self):
        class Welcome(Lent):
            pass

        assert Welcome.definition.anchor_fields == frozenset()

    def test_takes_several_starts(self):
        class Several(Lent):
            starts_on = (created(), "order.placed")

        assert Several.definition.starts_on == (Created(), "order.placed")

    def test_takes_none(self):
        class Manual(Lent):
            pass

        assert Manual.definition.starts_on == ()
        assert Manual.definition.exits == {}

    def test_of_a_system_timeline_has_no_label(self):
        class Sweep(Timeline):
            @task(after(days=1))
            def sweep(self):
                return 3

        assert Sweep.definition.label == ""
        assert Sweep().sweep() == 3


class TestName:
    @pytest.mark.parametrize(
        ("class_name", "name"),
        [
            ("Trial", "trial"),
            ("FreeTrial", "free_trial"),
            ("HTTPCheck", "http_check"),
            ("CheckHTTP", "check_http"),
            ("Day2Mail", "day2_mail"),
            ("Free_Trial", "free_trial"),
            ("X", "x"),
        ],
    )
    def test_is_the_class_name_in_snake_case(self, class_name, name):
        assert type(class_name, (Lent,), {}).definition.name == name

    def test_can_be_given(self):
        class Renamed(Lent):
            name = "trial2"

        assert Renamed.definition.name == "trial2"

    def test_is_not_inherited(self):
        """Two timelines of one name could not be told apart."""

        class First(Lent):
            name = "one"

        class Second(First):
            pass

        assert Second.definition.name == "second"


class TestInheritance:
    def test_from_an_abstract_class_lends_its_tasks(self):
        class Borrowed(Lent):
            @task(after(days=9))
            def ask(self, order):
                return "how was it"

        assert list(Borrowed.definition.tasks) == ["greet", "follow", "ask"]
        assert Borrowed().greet(None) == "hello"

    def test_leaves_an_abstract_class_without_definition(self):
        assert not hasattr(Lent, "definition")

    def test_from_a_declared_class_gives_each_its_own_definition(self):
        class Longer(Trial):
            exits = {}

        assert Longer.definition.cls is Longer
        assert Longer.definition.exits == {}
        assert Trial.definition.exits == {"order.paid": "paid"}
        assert dict(Longer.definition.tasks) == dict(Trial.definition.tasks)

    def test_takes_shadow_along_and_lets_it_be_lifted(self):
        class InShadow(Lent, abstract=True):
            shadow = True

        class Inherits(InShadow):
            pass

        class Lifted(Inherits):
            shadow = False

        assert [cls.definition.shadow for cls in (Trial, Inherits, Lifted)] == [False, True, False]

    def test_lets_a_task_be_overridden(self):
        class Later(Lent):
            @task(after(days=7))
            def greet(self, order):
                return "hello at last"

        assert Later.definition.tasks["greet"].when == after(days=7)
        assert Later().greet(None) == "hello at last"
        assert Later.definition.tasks["follow"].when.predecessor_name == "greet"

    def test_lets_a_task_be_removed(self):
        class Shorter(Lent):
            follow = None

        assert list(Shorter.definition.tasks) == ["greet"]

    def test_lets_a_task_be_replaced_by_a_plain_method(self):
        class Quiet(Lent):
            def follow(self, order):
                return "no task"

        assert list(Quiet.definition.tasks) == ["greet"]

    def test_refuses_a_keyword_nobody_knows(self):
        with pytest.raises(TypeError, match="takes no keyword arguments"):
            type("Misspelt", (Lent,), {}, colour="red")

    def test_takes_tasks_from_a_class_that_is_no_timeline(self):
        class Mixin:
            @task(after(days=3))
            def survey(self, order):
                return "asked"

        class Mixed(Mixin, Lent):
            pass

        assert set(Mixed.definition.tasks) == {"greet", "follow", "survey"}


class TestInstance:
    def test_runs_a_method_as_it_stands(self):
        assert Trial().expire("A1") == "expired A1"

    def test_runs_a_method_that_calls_another(self):
        assert Trial().check("A1") == "expired A1"

    def test_gives_a_method_the_context_it_reads(self):
        assert Trial(now=NOW).remind("A1") == "reminded A1 at 09:00"

    @pytest.mark.parametrize("name", sorted(RESERVED))
    def test_has_each_part_of_the_context_that_was_given(self, name):
        given = object()

        assert getattr(Trial(**{name: given}), name) is given

    @pytest.mark.parametrize("name", sorted(RESERVED))
    def test_says_of_each_part_that_was_not_how_to_give_it(self, name):
        when = "in a step: a method with @step" if name == "step" else "while a task runs"

        with pytest.raises(TimelineError, match=rf"self\.{name} is there {when}.*Trial\({name}=…\)"):
            getattr(Trial(), name)

    @pytest.mark.parametrize(("name", "value"), [("run", None), ("event", None), ("lost", False)])
    def test_has_an_empty_part_too(self, name, value):
        assert getattr(Trial(**{name: value}), name) is value

    def test_gives_a_handler_of_many_the_context_of_each(self):
        newsletter = Newsletter(now=NOW, tasks={"A1": SimpleNamespace(lost=True), "A2": SimpleNamespace(lost=False)})

        assert newsletter.send(["A1", "A2"]) == {"A1": "09:00 again", "A2": "09:00"}

    def test_runs_an_async_method(self):
        assert asyncio.run(Newsletter().call("A1")) == "called A1"

    def test_refuses_a_part_the_context_does_not_have(self):
        with pytest.raises(TypeError, match=r"Trial\(\) takes \[.*'idempotency_key'.*\], not \['user'\]"):
            Trial(user="ada")

    def test_lets_the_context_be_read_only(self):
        trial = Trial(idempotency_key=UUID(int=1))

        with pytest.raises(AttributeError):
            trial.idempotency_key = UUID(int=2)


class TestCreated:
    def test_equals_another_and_nothing_else(self):
        assert created() == Created()
        assert created() != "created()"
        assert len({created(), created()}) == 1

    def test_says_how_it_is_written(self):
        assert repr(created()) == "created()"
