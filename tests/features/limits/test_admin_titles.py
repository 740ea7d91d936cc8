"""Titles on the page of limits."""

from __future__ import annotations

from tests.admin import conftest as admin
from tests.admin import test_titles as titles
from tests.admin.conftest import text_of
from tests.admin.test_titles import TITLE
from tests.features.limits.test_admin import LIMITS
from timeline.lifecycle import State

about = admin.about  # Fixtures.
browse = admin.browse
clock = admin.clock
operator = admin.operator
person = admin.person

run = titles.run  # Fixtures.


class TestTitles:
    def test_name_who_holds_a_place(self, operator, run, about, order):
        about(order, state=State.ACTIVE, task_key="welcome.greet", limit_key="welcome.greet", slot=1)

        assert f">{TITLE}</a>" in text_of(operator.get(LIMITS))
