"""Titles and descriptions of tasks, wherever the API names tasks."""

from __future__ import annotations

import pytest
from django.utils.translation import gettext_lazy

from tests.api.conftest import ROOT
from timeline import Timeline, after, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import emit
from timeline.testing import only_timelines


class Courtesy(Timeline):
    """About accounts."""

    entity = "accounts.User"
    starts_on = "account.seen"
    exits = {"account.left": "left"}
    titles = {"left": gettext_lazy("Yes")}

    @task(after(days=3), title=gettext_lazy("Yes"))
    def greet(self, user):
        """
        Say hello.

        Once.
        """

    @task(after(greet, days=7), title="Ask how it went")
    def ask(self, user): ...

    @task(after(days=4))
    def plain(self, user): ...


@pytest.fixture
def run(ada):
    with only_timelines(Courtesy):
        [run] = emit("account.seen", ada).started
        yield run


class TestTitles:
    def test_are_of_tasks_in_the_language_of_the_request(self, by_staff, run):
        found = by_staff.client.get(f"{ROOT}/tasks/", headers={"accept-language": "de"}).json()["results"]

        assert {each["task"]: each["title"] for each in found} == {"courtesy.greet": "Ja", "courtesy.plain": ""}

    def test_are_of_the_exit_that_ended_a_run(self, by_staff, run, ada):
        emit("account.left", ada)

        found = by_staff.client.get(f"{ROOT}/tasks/", {"state": "cancelled"}, headers={"accept-language": "de"})

        assert {(each["reason"], each["reason_title"]) for each in found.json()["results"]} == {("left", "Ja")}

    def test_have_the_description_beside_them_in_the_detail(self, by_staff, run):
        told = by_staff.get(f"tasks/{run.tasks.get(task_key='courtesy.greet').pk}/").json()

        assert (told["title"], told["description"]) == ("Yes", "Say hello.")

    def test_leave_out_the_description_for_whoever_sees_just_what_is_theirs(self, asked_by, run, ada):
        told = asked_by(ada).get(f"tasks/{run.tasks.get(task_key='courtesy.greet').pk}/").json()

        assert (told["title"], told["description"]) == ("Yes", "")

    def test_are_of_what_is_foreseen(self, by_staff, run, ada):
        parts = by_staff.get(f"entities/accounts.user/{ada.pk}/tasks/").json()

        assert [each["title"] for each in parts["foreseen"]["results"]] == ["Ask how it went"]

    def test_are_of_dead_letters(self, by_staff, about, ada, run):
        row = about("courtesy.greet", ada, state=State.DISCARDED, attempt=1)
        ScheduledTask.objects.filter(pk=row.pk).update(fingerprint="1" * 16)

        assert [each["title"] for each in by_staff.get("dead-letters/").json()] == ["Yes"]
