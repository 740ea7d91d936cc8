"""The list of upcoming events says what it has no rows for: what follows, and the next runs by the clock."""

from __future__ import annotations

import pytest

from tests.admin.conftest import LIST, Care, text_of
from tests.testapp.models import Order
from timeline import Timeline, after, daily, task
from timeline.admin import foreseen_list
from timeline.admin.references import why_in_words
from timeline.shortcuts import emit
from timeline.testing import only_timelines

NOT_SHOWN = "Not shown: what follows when a task completes."


class Nightly(Timeline):
    starts_on = daily("02:00", zone="UTC")

    @task(after())
    def count(self): ...


class Early(Timeline):
    starts_on = daily("01:00", zone="UTC")

    @task(after())
    def count(self): ...


def keys(response):
    return [str(each.called.key) for each in response.context["followers"]]


@pytest.fixture
def placed(order, clock):
    emit("order.placed", order)
    return order


class TestFollowers:
    def test_are_those_of_the_tasks_shown_of_one_timeline(self, operator, placed):
        response = operator.get(LIST, {"timeline": "care"})

        assert keys(response)
        assert {each.entity.name for each in response.context["followers"]} == {str(placed)}
        assert "each gets a row when what it follows completes" in text_of(response)
        assert NOT_SHOWN not in text_of(response)

    def test_are_those_of_one_entity(self, operator, placed):
        other = Order.objects.create()
        emit("order.placed", other)

        response = operator.get(LIST, {"q": f"testapp.order {placed.pk}"})

        assert {each.entity.name for each in response.context["followers"]} == {str(placed)}

    def test_are_none_of_the_whole_list_which_says_so(self, operator, placed):
        response = operator.get(LIST)

        assert keys(response) == []
        assert NOT_SHOWN in text_of(response)

    @pytest.mark.parametrize("more", [{"state": "all"}, {"reason": "operator"}, {"task": "care.greet"}])
    def test_are_none_where_more_is_asked(self, operator, placed, more):
        assert keys(operator.get(LIST, {"timeline": "care", **more})) == []

    def test_are_cut_and_it_says_so(self, operator, placed, monkeypatch):
        monkeypatch.setattr(foreseen_list, "SHOWN", 1)
        for _number in range(3):
            emit("order.placed", Order.objects.create())

        response = operator.get(LIST, {"timeline": "care"})

        assert len(keys(response)) == 1
        assert f"{response.context['more_followers']} more are not shown." in text_of(response)

    def test_take_twelve_statements_at_most_however_many(self, operator, placed, django_assert_max_num_queries):
        for _number in range(30):
            emit("order.placed", Order.objects.create())

        operator.get(LIST, {"timeline": "care"})
        with django_assert_max_num_queries(12):
            assert keys(operator.get(LIST, {"timeline": "care"}))

    def test_are_none_for_who_sees_only_what_is_theirs(self, browse, person, about):
        """They open an entity, and see what follows there."""
        about(ada := person("ada", is_staff=True), 1, task_key="account.welcome")

        response = browse(ada).get(LIST, {"timeline": "account"})

        assert len(response.context["bands"]) == 1
        assert "followers" not in response.context
        assert NOT_SHOWN not in text_of(response)


class TestByTheClock:
    def test_says_how_many_there_are_and_which_is_next(self, operator, placed):
        with only_timelines(Care, Nightly, Early):
            text = text_of(operator.get(LIST))

        assert "2 timelines run by the clock: next early, Mon 2026-03-02 01:00, in" in text
        assert "?starts=clock" in text

    def test_is_of_one_timeline_alone_where_that_is_asked_for(self, operator, placed):
        with only_timelines(Care, Nightly, Early):
            one, none = (text_of(operator.get(LIST, {"timeline": name})) for name in ("nightly", "care"))

        assert "1 timeline runs by the clock: next nightly" in one
        assert "by the clock" not in none

    def test_is_for_who_may_see_all_of_what_is_ahead(self, operator, browse, person, placed, about):
        about(ada := person("ada", "view_scheduledtask"), 1, task_key="account.welcome")
        with only_timelines(Care, Nightly):
            assert "by the clock" in text_of(browse(ada).get(LIST))
            assert "by the clock" not in text_of(operator.get(LIST, {"state": "discarded"}))


class Telling(Timeline):
    entity = "testapp.Order"

    @task(after(days=1), title="End it")
    def end(self, order): ...

    @task(after(end, days=2))
    def tell(self, order): ...

    @task(after(tell))
    def end_all(self, order): ...


def test_why_something_is_foreseen_has_the_title_of_what_it_follows():
    with only_timelines(Telling):
        assert why_in_words("telling.tell", "2 days after end completes") == "2 days after “End it” completes"
        assert why_in_words("telling.end_all", "when tell completes") == "when tell completes"
        assert why_in_words("telling.end", "1 day after the start of the run") == "1 day after the start of the run"
        assert why_in_words("nobody.knows", "end") == "end"
