"""What ``debounce`` may be, and what is refused when the class is declared or registered."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from timeline import Debounce, Timeline, after, every, task
from timeline.exceptions import DefinitionError
from timeline.registry import registry
from timeline.testing import only_timelines

MINUTE = timedelta(minutes=1)


def declared(debounce, *, when=None, about="testapp.Order", **options):
    class Index(Timeline):
        entity = about
        exits = {"order.closed": "closed"}

        @task()
        def other(self, *order): ...

        @task(when, debounce=debounce, **options)
        def rebuild(self, *order): ...

    return Index


def of(event="order.edited", quiet=MINUTE, **more):
    return Debounce(event, quiet, **more)


class TestDebounce:
    def test_says_which_argument_is_missing(self):
        with pytest.raises(
            DefinitionError, match=r"Debounce\(\) in line \d+ misses an argument: 'quiet'\. Write Debounce\("
        ):
            Debounce("order.edited")

    @pytest.mark.parametrize(
        "good",
        [None, of(), of(("order.edited", "order.moved"), at_latest=MINUTE), of(of="testapp.Invoice", by="order")],
        ids=["none", "plain", "several", "by"],
    )
    def test_is_taken(self, good):
        with only_timelines(declared(good)):
            pass

    @pytest.mark.parametrize(
        ("bad", "said"),
        [
            (5, "Index.rebuild: has debounce = 5. Use Debounce(event, quiet=…)."),
            (of(""), "has a debounce with event = ''. Give text like 'page.edited'."),
            (of(()), "has a debounce with event = (). Name an event, or several in a tuple."),
            (of(7), "has a debounce with event = 7."),
            (of(("order.edited", 7)), "has a debounce with event = 7."),
            (of("order edited"), "has a debounce with event = 'order edited'."),
            (of("order.closed"), "has a debounce of 'order.closed', which is an exit of the class."),
            (of(quiet=5), "has a debounce with quiet = 5. Use a positive timedelta"),
            (of(quiet=timedelta(0)), "has a debounce with quiet = datetime.timedelta(0)."),
            (of(quiet=timedelta(days=400)), "of 366 days at most."),
            (of(at_latest=5), "has a debounce with at_latest = 5."),
            (
                of(at_latest=MINUTE / 2),
                "has a debounce with at_latest = 0:00:30, which is less than quiet = 0:01:00. Give a longer at_latest",
            ),
            (of(of=3), "has a debounce with of = 3."),
            (of(of="Invoice"), "has a debounce with of = 'Invoice'."),
            (of(by=3), "has a debounce with by = 3."),
            (of(by="order"), "has a debounce by 'order', and does not say of which model."),
            (of(of="testapp.Invoice"), "does not say what leads from there to the entity."),
            (of(of="testapp.Invoce", by="order"), "no such model is installed. Did you mean 'testapp.Invoice'?"),
            (
                of(of="testapp.Pce", by="order"),
                'no such model is installed. Use "app_label.Model" of an installed app.',
            ),
            (of(of="testapp.Invoice", by="ordr"), "which testapp.Invoice does not have. Did you mean 'order'?"),
            (of(of="testapp.Leaf", by="folder"), "which does not lead from testapp.Leaf to testapp.order."),
            (of(of="testapp.Invoice", by="id"), "Name a foreign key to the primary key of testapp.order."),
        ],
        ids=[
            *("number", "empty", "none", "no-text", "one-no-text", "blank", "exit", "no-length", "zero", "too-long"),
            *("no-limit", "short", "of-number", "of-no-label", "by-number", "by-alone", "of-alone", "no-model"),
            "no-model-of-ours",
            *("no-field", "elsewhere", "no-key"),
        ],
    )
    def test_is_refused(self, bad, said):
        with pytest.raises(DefinitionError, match=re.escape(said)), only_timelines(declared(bad)):
            pass

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"when": after(days=1)}, "has debounce and a schedule. Leave it out, @task(debounce=…)"),
            ({"when": every(days=1)}, "has debounce and a schedule."),
            ({"spread": MINUTE}, "has spread, but no schedule"),
            ({"about": None}, "has debounce, but no entity"),
        ],
        ids=["schedule", "repeated", "spread", "no-entity"],
    )
    def test_is_refused_with_others(self, options, said):
        with pytest.raises(DefinitionError, match=re.escape(said)):
            declared(of(), **options)

    def test_makes_its_events_known(self):
        with only_timelines(declared(of(of="testapp.Invoice", by="order"))):
            assert "order.edited" in registry.events()["testapp.invoice"]
