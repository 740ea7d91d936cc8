"""The page of the inventory."""

from __future__ import annotations

from django.urls import reverse

from tests.admin.conftest import LIST, text_of
from timeline.lifecycle import State

INVENTORY = reverse("admin:timeline_scheduledtask_inventory")


class TestInventory:
    def test_shows_each_timeline(self, operator, about, order):
        about(order, state=State.DISCARDED, task_key="care.greet")

        page = text_of(operator.get(INVENTORY))

        assert "About orders; its follow-up is foreseen." in page
        assert "order.placed" in page
        assert "order.returned" in page
        assert "3 days after the start of the run" in page
        assert "discarded" in page
        assert INVENTORY in text_of(operator.get(LIST))

    def test_is_not_there_for_who_may_not_see_all_tasks(self, person, browse):
        assert browse(person("nora")).get(INVENTORY).status_code in (302, 403)
        assert browse(person("mia", "view_payload")).get(INVENTORY).status_code == 403

    def test_takes_the_same_number_of_statements_for_many_tasks(
        self, operator, about, order, django_assert_max_num_queries
    ):
        for _ in range(20):
            about(order, state=State.DISCARDED)

        with django_assert_max_num_queries(8):
            operator.get(INVENTORY)
