"""Pages by keys: every row once, also while rows come, go and move."""

from __future__ import annotations

import pytest

from tests.admin.conftest import LIST
from timeline.admin import task_list
from timeline.lifecycle import State
from timeline.models import ScheduledTask


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch):
    monkeypatch.setattr(task_list, "SIZE", 3)


def walk(client, given="", between=lambda number: None, link="next"):
    """Follow a link from page to page; gives the ids of each page."""
    pages, where = [], LIST + given
    while where:
        context = client.get(where).context
        pages.append([row.task.pk for band in context["bands"] for row in band.rows])
        where = LIST + context[link] if context[link] else ""
        between(len(pages))
    return pages


class TestPages:
    @pytest.mark.parametrize(("given", "turn"), [("", 1), ("?state=all", -1)], ids=["what is open", "latest first"])
    def test_show_every_row_once(self, operator, about, order, given, turn):
        """Also rows of the same time, told apart by their ids."""
        rows = [about(order, hours) for hours in (5, 1, 1, 1, 1, 2, 9, 24, 25, 2)]
        expected = [row.pk for row in sorted(rows, key=lambda row: (row.scheduled_at, row.pk))][::turn]

        pages = walk(operator, given)

        assert [len(page) for page in pages] == [3, 3, 3, 1]
        assert [pk for page in pages for pk in page] == expected

    def test_lead_back_the_same_way(self, operator, about, order):
        for hours in range(8):
            about(order, hours + 1)
        forth = walk(operator)
        last = operator.get(LIST + operator.get(LIST).context["next"]).context["next"]

        back = walk(operator, last, link="previous")

        assert back == forth[::-1]

    def test_neither_repeat_nor_skip_while_rows_change(self, operator, about, order):
        """Rows that stay where they are are met once, whatever happens around them."""
        staying = [about(order, hours) for hours in range(10, 20)]
        going = [about(order, hours) for hours in range(1, 9)]

        def disturb(number):
            about(order, 0.5)
            if number <= len(going):
                ScheduledTask.objects.filter(pk=going[-number].pk).delete()

        met = [pk for page in walk(operator, between=disturb) for pk in page]

        assert len(met) == len(set(met))
        assert [pk for pk in met if pk in {row.pk for row in staying}] == [row.pk for row in staying]

    def test_begin_where_an_address_says_whatever_the_state(self, operator, about, order):
        """On PostgreSQL the states are read apart and merged."""
        rows = [about(order, number, state=state) for number, state in enumerate(State, start=1)]

        met = [pk for page in walk(operator, "?state=all") for pk in page]

        assert met == [row.pk for row in reversed(rows)]
