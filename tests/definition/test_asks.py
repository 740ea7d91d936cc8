"""What a machine asks people for is checked when the class is made."""

from __future__ import annotations

import pytest
from django.utils.translation import gettext_lazy, override

from timeline import OPEN, OWNER, Machine, ask
from timeline.exceptions import DefinitionError
from timeline.features.machines.parse import AskedEvent

TABLE = {"a": {"go": "b", "say": "a", "noise": "b"}, "b": {}}


def made(asks, **columns):
    return type(
        "Asked",
        (Machine,),
        {"__module__": __name__, "entity": "testapp.Order", "initial": "a", "table": TABLE, "asks": asks} | columns,
    )


class TestAsks:
    def test_are_read_with_the_states_in_which_they_are_asked(self):
        definition = made({"go": "shop.resolve", "say": ("shop.resolve", "shop.look")}).definition

        assert definition.asks == {
            "go": AskedEvent(("shop.resolve",)),
            "say": AskedEvent(("shop.look", "shop.resolve")),
        }
        assert definition.asked_in == {"a": ("go", "say")}
        assert definition.waiting_in == {"a"}

    def test_have_a_title_that_is_read_when_it_is_shown(self):
        asks = {"go": ask(gettext_lazy("Delete"), by=("shop.resolve", "shop.look")), "say": "shop.look"}
        definition = made(asks).definition

        assert definition.asks["go"].permissions == ("shop.look", "shop.resolve")
        with override("de"):
            assert definition.button_of("go") == "Löschen"
        assert [definition.button_of(event) for event in ("go", "say")] == ["Delete", "say"]

    def test_of_what_all_open_states_take_make_none_of_them_wait(self):
        definition = made({"off": "shop.resolve"}, table={"a": {"go": "b"}, "b": {}, OPEN: {"off": "b"}}).definition

        assert definition.asked_in == {"a": ("off",)}
        assert definition.waiting_in == frozenset()

    def test_may_be_asked_of_the_owner(self):
        class Mine(Machine):
            entity = "testapp.Seat"
            owner = "plan.user"
            initial = "a"
            table = TABLE
            asks = {"go": OWNER}

        assert Mine.definition.asks["go"] == AskedEvent((), owner=True)

    @pytest.mark.parametrize(
        ("asks", "said"),
        [
            ({"gone": "shop.resolve"}, "gone"),
            ({"go": "resolve"}, "no permission"),
            ({"go": ()}, "asks nobody"),
            ({"go": 7}, "no permission"),
            ({7: "shop.resolve"}, "no state takes"),
            (["go"], "Use a dict"),
            ({"go": OWNER}, "have none"),
            ({"go": "It can go on"}, "says not who may say it"),
            ({"go": gettext_lazy("Delete")}, "says not who may say it"),
            ({"go": ask("It can go on", by=())}, "asks nobody"),
            ({"go": ask("It can go on", by="resolve")}, "no permission"),
            ({"go": ask(" ", by="shop.resolve")}, "as its title"),
            ({"go": ask("x" * 101, by="shop.resolve")}, "as its title"),
            ({"go": ask(7, by="shop.resolve")}, "as its title"),
        ],
    )
    def test_are_refused_where_they_mean_nothing(self, asks, said):
        with pytest.raises(DefinitionError, match=said):
            made(asks)
