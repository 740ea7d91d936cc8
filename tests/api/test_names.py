"""Names that mean nothing: refused wherever a request gives one, with the name that is meant, perhaps."""

from __future__ import annotations

import pytest

from tests.api.test_tasks import problem
from timeline.api.filters import refuse_unknown_names
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import redrive

GONE = "old.greet"  # Of a timeline that the code does not have any more.
BULK = {"action": "cancel", "reason": "no longer true", "dry_run": True}


@pytest.fixture
def gone(about, ada):
    """A task of a timeline that is not declared any more."""
    return about(GONE, ada)


class TestFilters:
    @pytest.mark.parametrize(
        ("query", "said"),
        [
            ({"timeline": "acount"}, "There is no 'acount' here. Did you mean 'account'?"),
            ({"timeline": "nothing"}, "There is no 'nothing' here."),
            ({"task": "account.gret"}, "There is no 'account.gret' here. Did you mean 'account.greet'?"),
            ({"task": "account"}, "There is no 'account' here. Did you mean 'account.ask'?"),
            ({"task": "greet"}, "There is no 'greet' here. Did you mean 'account.greet'?"),
        ],
    )
    def test_refuse_a_name_that_means_nothing(self, by_staff, query, said):
        told = problem(by_staff.get("tasks/", **query), 400)

        assert (told["field"], told["detail"]) == (*query, said)

    @pytest.mark.parametrize("query", [{"timeline": "account"}, {"task": "seating.free"}])
    def test_take_a_name_that_the_code_knows_without_asking_for_rows(self, by_staff, query, django_assert_num_queries):
        with django_assert_num_queries(0):
            refuse_unknown_names(query, ScheduledTask.objects.all())

        assert by_staff.get("tasks/", **query).json()["results"] == []

    @pytest.mark.parametrize("query", [{"timeline": "old"}, {"task": GONE}])
    def test_ask_once_about_a_name_that_the_code_does_not_know(self, gone, query, django_assert_num_queries):
        with django_assert_num_queries(1):
            refuse_unknown_names(query, ScheduledTask.objects.all())

    @pytest.mark.parametrize("query", [{"timeline": "old"}, {"task": GONE}])
    def test_take_a_name_that_the_code_has_no_longer_where_rows_have_it(self, by_staff, gone, query):
        assert [row["task"] for row in by_staff.get("tasks/", **query).json()["results"]] == [GONE]
        assert by_staff.get("tasks/", state="completed", **query).json()["results"] == []

    @pytest.mark.parametrize("query", [{"timeline": "old"}, {"task": GONE}])
    def test_say_nothing_of_the_rows_of_others(self, asked_by, ada, person, gone, query):
        assert asked_by(ada).get("tasks/", **query).status_code == 200
        told = problem(asked_by(person("ben")).get("tasks/", **query), 400)

        assert "Did you mean" not in told["detail"]


class TestBulk:  # of bulk_actions
    @pytest.mark.parametrize(
        ("meant", "field"),
        [
            ({"timeline": "acount"}, "filter.timeline"),
            ({"task": "account.gret", "state": ["scheduled"]}, "filter.task"),
        ],
    )
    def test_refuses_a_name_that_means_nothing(self, by_staff, meant, field):
        told = problem(by_staff.post("tasks/bulk/", {**BULK, "filter": meant}), 400)

        assert told["field"] == field
        assert "Did you mean 'account" in told["detail"]

    def test_refuses_a_group_that_is_not_there(self, by_staff):
        told = problem(by_staff.post("tasks/bulk/", {**BULK, "filter": {"group": "1" * 16}}), 400)

        assert told["field"] == "filter.group"

    def test_takes_a_name_that_the_code_has_no_longer_where_rows_have_it(self, by_staff, gone):
        assert by_staff.post("tasks/bulk/", {**BULK, "filter": {"timeline": "old"}}).json()["matched"] == 1


class TestDeadLetters:
    def test_refuse_a_group_that_is_not_there(self, by_staff):
        told = problem(by_staff.get("dead-letters/", group="1" * 16), 400)

        assert (told["field"], told["detail"]) == ("group", f"There is no '{'1' * 16}' here.")

    def test_take_a_group_that_was_redriven_by_now(self, by_staff, about, ada):
        dead = about("account.call", ada, state=State.DISCARDED, attempt=1, error="ValueError: no")
        ScheduledTask.objects.filter(pk=dead.pk).update(fingerprint="2" * 16)
        redrive(dead, reason="mended")

        assert by_staff.get("dead-letters/", group="2" * 16).json() == []


class TestTargetsOfHolds:
    @pytest.mark.parametrize(
        ("scope", "target", "meant"),
        [("timeline", "acount", "account"), ("task", "account.gret", "account.greet"), ("queue", "defualt", "default")],
    )
    def test_are_refused_with_what_is_meant(self, by_staff, clock, scope, target, meant):
        told = problem(by_staff.post("holds/", {"scope": scope, "target": target, "reason": "x"}), 400)

        assert f"Did you mean '{meant}'?" in told["remedy"]


class TestLabels:
    @pytest.mark.parametrize("path", ["events/", "holds/"])
    def test_are_refused_with_what_is_meant(self, by_staff, clock, path):
        body = {"events/": {"name": "user.created"}, "holds/": {"scope": "entity", "reason": "x"}}[path]

        told = problem(by_staff.post(path, {**body, "entity": {"label": "accounts.usr", "id": "1"}}), 400)

        assert (told["field"], told["remedy"]) == (
            "entity",
            "Did you mean 'accounts.user'? Give the label of a model that one is about.",
        )


class TestParameters:
    @pytest.mark.parametrize(
        ("path", "query", "meant"),
        [
            ("tasks/", {"timelin": "account"}, "timeline"),
            ("tasks/", {"stat": "retryable"}, "state"),
            ("me/tasks/", {"prat": "past"}, "part"),
            ("holds/", {"realeased": "true"}, "released"),
            ("dead-letters/", {"gruop": "1"}, "group"),
        ],
    )
    def test_that_mean_nothing_are_refused_with_what_is_meant(self, by_staff, path, query, meant):
        told = problem(by_staff.get(path, **query), 400)

        assert told["detail"].startswith(f"Did you mean {meant!r}? Unknown query parameter.")
        assert [told["field"]] == [*query]
