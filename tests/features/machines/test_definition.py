"""What a table may say with ``to``, and what is refused when the class is declared."""

from __future__ import annotations

import re

import pytest

from timeline import IGNORE, STAY, Machine, after, never, on, to
from timeline.definition import Definition
from timeline.exceptions import DefinitionError, InvalidInput
from timeline.features.machines.reading import states_of


def is_paid(order):
    """Whether."""


def is_dear(order, passage):
    """Whether."""


def note_it(order):
    """Do."""


async def late(order):
    """Not now."""


class Later:
    async def __call__(self, order):
        """Not now, either: what it gives would count as true."""


def too_much(order, passage, more):
    """Never."""


def declared(told, **said) -> Definition:
    class Sale(Machine):
        entity = "testapp.Order"
        initial = "open"
        table = {"open": {"go": told, "end": "closed"}, "sent": {"end": "closed"}, "closed": {}}

    for name, value in said.items():
        setattr(Sale, name, value)
    return Sale.definition


class TestTo:
    def test_leads_where_it_says(self):
        table = declared([to("sent", when=is_paid, do=note_it), "closed"]).machine

        assert ("open", "sent") in table.edges
        assert ("open", "closed") in table.edges

    def test_is_told_in_words(self):
        [state, *_others] = states_of(
            declared([to("sent", when=is_paid, do=note_it), to("closed", when=is_dear, title="dear!")])
        )

        assert state.lines == ["end → closed", "go [is paid] / note it → sent", "go [dear!] → closed"]
        assert state.takes["go"] == "sent"

    def test_is_not_said_ahead(self):
        definition = declared([to("sent", when=is_paid), "closed"])

        with pytest.raises(InvalidInput, match="leads to one of sent, closed, by what conditions say"):
            definition.cls.next("open", "go")


class TestRefused:
    @pytest.mark.parametrize(
        ("told", "said"),
        [
            ([to("sent"), to("closed", when=is_paid)], "has a way to 'closed' behind one that always holds"),
            (["sent", to("closed", when=is_paid)], "has a way to 'closed' behind one that always holds"),
            ([to("sent", when=is_paid), to("closed", when=is_paid)], "asks 'is paid' twice"),
            ([to("sent", when=is_paid), IGNORE, "closed"], "has a way to 'closed' behind"),
            (to("sent", when="is_paid"), "has when = 'is_paid', for"),
            (to("sent", when=late), "declared with async def"),
            (to("sent", do=late), "declared with async def"),
            (to("sent", when=Later(), title="later"), "declared with async def"),
            (to("sent", do=too_much), "which takes neither one nor two arguments"),
            (to("sent", when=lambda order: True), "has when = a function without a name"),
            (to(IGNORE, do=note_it), "does something where nothing moves"),
            (to("snet", when=is_paid), "names the state 'snet' (open, go), which has no row. Did you mean 'sent'?"),
            (["sent", "closed"], "has several targets for 'open' and 'go'"),
            ({"sent", "closed"}, "has several targets for 'open' and 'go'"),
            ([], "has several targets for 'open' and 'go'"),
        ],
    )
    def test_with_what_to_do(self, told, said):
        with pytest.raises(DefinitionError, match=re.escape(said)):
            declared(told)

    def test_an_option_that_there_is_not(self):
        with pytest.raises(DefinitionError, match=r"has wenn= in line .*Did you mean 'when'"):
            to("sent", wenn=is_paid)

    def test_what_nothing_leads_to(self):
        with pytest.raises(DefinitionError, match="has 'sent', which no way leads to"):
            declared(to("closed", when=is_paid))

    @pytest.mark.parametrize("is_said", [False, True])
    def test_a_timer_by_which_nothing_may_move(self, is_said):
        """Its event ends in IGNORE there; once it has come, nothing else does. Who means that says never."""
        timers = {"go": on("open", hours=1), "end": on("sent", days=9)} | ({"open": never} if is_said else {})
        given = {
            "entity": "testapp.Order",
            "initial": "open",
            "table": {"open": {"go": [to("sent", when=is_paid), IGNORE]}, "sent": {"end": "closed"}, "closed": {}},
            "timers": timers,
            "__module__": __name__,
        }
        if is_said:
            assert type(Machine)("Sale", (Machine,), given).definition
            return
        said = "may rest for ever in 'open', where the timer of 'go' is ignored if no condition holds"
        with pytest.raises(DefinitionError, match=re.escape(said)):
            type(Machine)("Sale", (Machine,), given)

    @pytest.mark.parametrize(
        ("option", "said"),
        [
            (
                {"timers": {"go": on("open", hours=1)}},
                "has a timer of 'go' in 'open', which takes that by conditions alone",
            ),
            ({"errors": {ValueError: "go"}}, "means 'go' by ValueError, which 'open' takes by conditions alone"),
            ({"spinning": "go"}, "has spinning = 'go', which 'open' takes by conditions alone"),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("is_sure", [False, True])
    def test_what_comes_by_itself_and_might_be_refused(self, option, said, is_sure):
        told = [to("sent", when=is_paid), *([STAY] if is_sure else [])]
        given = {
            "entity": "testapp.Order",
            "initial": "open",
            "table": {"open": {"go": told, "end": "closed"}, "sent": {"end": "closed"}, "closed": {}},
            "timers": {"end": after("sent", "open", days=9)},
            "__module__": __name__,
        }
        given["timers"] = given["timers"] | option.get("timers", {})
        given |= {name: value for name, value in option.items() if name != "timers"}
        if is_sure:
            assert type(Machine)("Sale", (Machine,), given).definition
            return
        with pytest.raises(DefinitionError, match=re.escape(said)):
            type(Machine)("Sale", (Machine,), given)
