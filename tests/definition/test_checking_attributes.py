"""What is called almost like an option is refused; what a host calls otherwise is its own."""

import pytest

from timeline import Machine, Timeline, created, step, task
from timeline.definition.check_timelines import NAMED
from timeline.exceptions import DefinitionError
from timeline.features.machines.declaration import METHODS
from timeline.features.machines.declaration import OPTIONS as OF_MACHINES


@task(atomic=False)
def go(self):
    return None


def named(name):
    def method(self):
        return None

    method.__name__ = name
    return method


def declare(*bases, **body):
    return type("Trial", bases or (Timeline,), {"__module__": __name__, "go": go, **body})


def declare_machine(**body):
    return declare(Machine, table={"new": {"paid": "done"}, "done": {}}, initial="new", **body)


class TestAttributeProblems:
    @pytest.mark.parametrize(
        ("given", "value", "meant"),
        [
            ("start_on", "user.created", "starts_on"),
            ("starts_one", created(), "starts_on"),
            ("exit", {"a.paid": "paid"}, "exits"),
            ("exits_on", {"a.paid": "paid"}, "exits"),
            ("owners", "account.user", "owner"),
            ("timezone", "zone", "time_zone"),
            ("entitty", "accounts.User", "entity"),
            ("names", "trial", "name"),
            ("keys", ("payment_id",), "key"),
            ("Entity", "accounts.User", "entity"),
        ],
    )
    def test_name_class_and_attribute_and_what_is_meant(self, given, value, meant):
        with pytest.raises(DefinitionError) as caught:
            declare(**{given: value})

        assert (caught.value.timeline, caught.value.method) == ("Trial", given)
        assert caught.value.remedy.startswith(f"Did you mean {meant!r}?")

    @pytest.mark.parametrize("name", sorted(NAMED))
    def test_know_each_option(self, name):
        with pytest.raises(DefinitionError, match=f"Did you mean {name!r}"):
            declare(**{f"{name}s" if name != "exits" else "exitss": ()})

    @pytest.mark.parametrize("name", sorted(OF_MACHINES - METHODS))
    def test_know_each_option_of_a_machine(self, name):
        with pytest.raises(DefinitionError, match=f"Did you mean {name!r}"):
            declare_machine(**{f"{name}z": ()})

    @pytest.mark.parametrize("name", sorted(OF_MACHINES - METHODS))
    def test_of_a_machine_alone_are_nothing_to_a_timeline(self, name):
        declare(**{f"{name}z": ()})

    def test_are_found_in_an_abstract_class_at_once(self):
        with pytest.raises(DefinitionError, match=r"Lent\.start_on"):
            type("Lent", (Timeline,), {"start_on": "a.b"}, abstract=True)

    def test_are_found_in_a_mixin_of_the_same_package(self):
        mixin = type("Billing", (), {"__module__": "tests.elsewhere", "exit": {}})

        with pytest.raises(DefinitionError, match=r"^Billing\.exit: "):
            declare(mixin, Timeline)

    def test_are_not_looked_for_in_a_mixin_of_another_package(self):
        declare(type("Billing", (), {"__module__": "others.billing", "exit": {}}), Timeline)

    @pytest.mark.parametrize(
        "value",
        [
            lambda self: None,
            property(lambda self: None),
            classmethod(lambda cls: None),
            staticmethod(lambda: None),
            type("Inner", (), {}),
            task()(named("exit")),
            step(named("exit")),
        ],
        ids=["method", "property", "classmethod", "staticmethod", "class", "task", "step"],
    )
    def test_are_no_methods_and_no_classes(self, value):
        declare(exit=value)

    @pytest.mark.parametrize(
        "name", ["_exit", "__owners", "EXITS", "OWNER", "colour", "entity_name", "template", "limits"]
    )
    def test_are_nothing_that_is_private_in_capitals_or_called_otherwise(self, name):
        declare(**{name: "x"})


class TestKeywordProblems:
    def test_ask_for_abstract(self):
        with pytest.raises(DefinitionError, match=r"^Trial: has abstrakt= .* Did you mean 'abstract'\?"):
            type("Trial", (Timeline,), {}, abstrakt=True)

    def test_send_an_option_into_the_class(self):
        with pytest.raises(DefinitionError, match=r"^Trial: has entity= beside its bases\. Write it into the class"):
            type("Trial", (Timeline,), {}, entity="accounts.User")

    def test_leave_a_mixin_its_own(self):
        class Coloured:
            def __init_subclass__(cls, *, colour, **extra):
                cls.colour = colour
                super().__init_subclass__(**extra)

        assert type("Trial", (Coloured, Timeline), {"go": go}, colour="red").colour == "red"


class TestContentProblems:
    def test_a_table_needs_a_machine(self):
        with pytest.raises(DefinitionError, match=r"Trial: has a table .* Inherit from Machine"):
            declare(table={"new": {"paid": "done"}, "done": {}}, initial="new")

    def test_a_table_of_something_else_does_not(self):
        declare(table="shop_order")


class TestTableProblems:
    @pytest.mark.parametrize("word", ["BACK", "STAY", "IGNORE", "back"])
    def test_ask_for_an_answer_that_is_written_as_text(self, word):
        with pytest.raises(DefinitionError, match=f"Did you mean {word.upper()}, without quotes"):
            type("Lock", (Machine,), {"table": {"a": {"go": word, "end": "b"}, "b": {}}, "initial": "a"})

    @pytest.mark.parametrize("word", ["OPEN", "WORKING"])
    def test_ask_for_a_row_that_is_written_as_text(self, word):
        with pytest.raises(DefinitionError, match=f"Did you mean {word}, without quotes"):
            type("Lock", (Machine,), {"table": {"a": {"go": "b"}, word: {"off": "b"}, "b": {}}, "initial": "a"})

    @pytest.mark.parametrize(
        ("option", "value"),
        [("spinning", "payd"), ("payloads", {"payd": dict}), ("errors", {ValueError: "payd"}), ("tells", ["payd"])],
    )
    def test_ask_for_the_event_that_is_meant(self, option, value):
        with pytest.raises(DefinitionError, match="Did you mean 'paid'"):
            declare_machine(**{option: value})
