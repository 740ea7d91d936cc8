"""How pages name tasks: long names have places to be broken into lines."""

from __future__ import annotations

import re

from django.utils.safestring import SafeString

from tests.admin.conftest import ENTITY, LIST, detail
from timeline.admin.references import breakable

LONG = "renewal_of_a_plan.remind_before_it_ends"


class TestBreakable:
    def test_leaves_short_names_alone(self):
        assert breakable("care.follow_up") == "care.follow_up"

    def test_breaks_long_ones_after_points_and_underscores(self):
        said = "renewal_<wbr>of_<wbr>a_<wbr>plan.<wbr>remind_<wbr>before_<wbr>it_<wbr>ends"

        assert breakable(LONG) == said

    def test_takes_no_markup(self):
        """The key of a task that no timeline declares any more may be any text."""
        assert "<script" not in breakable("a_<script>alert(1)</script>_b")
        assert not isinstance(breakable("<b>"), SafeString)

    def test_is_how_pages_name_tasks(self, operator, about, order):
        row = about(order, task_key=LONG)
        seen = breakable(LONG)

        for path in (LIST, detail(row), f"{ENTITY}?label=testapp.order&id={order.pk}"):
            text = operator.get(path).content.decode()
            assert seen in text
            assert re.search(rf'href="{detail(row)}">{re.escape(LONG)}<', text) is None
