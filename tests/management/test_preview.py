"""``timeline_preview``: what would be, in the terminal."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.features.plans.test_operations_trying import Shipping
from tests.testapp.models import Order
from timeline.shortcuts import emit
from timeline.testing import only_timelines


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Shipping):
        yield


@pytest.fixture
def order(clock):
    order = Order.objects.create(ships_at=clock.now + timedelta(days=10))
    emit("order.placed", order)
    return order


def run(*arguments):
    out = StringIO()
    call_command("timeline_preview", "testapp.Order", *arguments, stdout=out)
    return out.getvalue()


class TestPreview:
    def test_prints_what_is_beside_what_would_be(self, order):
        lines = run(str(order.pk), "--set", "ships_at=2030-05-01T10:00:00Z").splitlines()

        head, *lines = lines
        assert head == f"{'as it is now':>20}  {'as it would be':>20}"
        assert len(lines) == 3
        assert "2030-04-30 10:00" in lines[0]
        assert lines[0].endswith("shipping.pack  moved")
        assert lines[2].endswith("shipping.ask (foreseen)  moved")

    def test_prints_plain_data(self, order):
        found = json.loads(run(str(order.pk), "--event", "order.returned", "--json"))

        assert [each["change"] for each in found] == ["gone"] * 3
        wanted = order.ships_at - timedelta(days=1)
        assert abs(datetime.fromisoformat(found[0]["at"]) - wanted) < timedelta(milliseconds=1)

    def test_says_that_nothing_is_ahead(self):
        assert run(str(Order.objects.create().pk)).strip() == "Nothing is ahead."

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--set", "ships_at"), "FIELD=VALUE"),
            (("--set", "note=x"), "no task is anchored to it"),
            (("--set", "ships_at=soon"), "ships_at"),
        ],
    )
    def test_says_what_is_wrong(self, order, arguments, said):
        with pytest.raises(CommandError, match=said):
            run(str(order.pk), *arguments)

    def test_says_that_there_is_no_such_entity(self):
        with pytest.raises(CommandError):
            run("999")
