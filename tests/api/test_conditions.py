"""Conditions of requests: nobody overwrites what they have not seen, and nobody is sent again what they have."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.conftest import ROOT
from tests.api.test_roles import PATHS
from tests.api.test_tasks import problem
from timeline.lifecycle import State
from timeline.policy import TimelinePolicy
from timeline.shortcuts import cancel, move

ACTIONS = {"cancel": State.SCHEDULED, "move": State.SCHEDULED, "run-now": State.SCHEDULED, "redrive": State.DISCARDED}
HOUR = timedelta(hours=1)


@pytest.fixture
def act(by_staff):
    """Do something to a task, under a condition: ``act(row, "cancel", '"0"')``."""

    def run(row, action, tag):
        body = {"reason": "x"} | ({"at": "2031-01-01T00:00:00Z"} if action == "move" else {})
        path = f"{ROOT}/tasks/{row.pk}/{action}/"
        return by_staff.client.post(path, body, content_type="application/json", headers={"If-Match": tag})

    return run


@pytest.mark.parametrize("action", ACTIONS)
class TestIfMatch:
    def test_lets_what_is_as_it_was_seen_be_changed(self, by_staff, act, ada, about, clock, action):
        row = about("account.call", ada, state=ACTIONS[action], scheduled_at=clock.now + HOUR)
        tag = by_staff.get(f"tasks/{row.pk}/").headers["ETag"]

        answer = act(row, action, tag)

        assert answer.status_code == 200, answer.content
        assert answer.headers["ETag"] == f'"{answer.json()["seq"]}"'

    def test_keeps_a_newer_decision(self, by_staff, act, ada, about, clock, action):
        row = about("account.call", ada, state=ACTIONS[action], scheduled_at=clock.now + HOUR, seq=2)
        shown = by_staff.get(f"tasks/{row.pk}/").headers["ETag"]
        row.seq += 1
        row.__class__.objects.filter(pk=row.pk, state__in=["scheduled"]).update(seq=3)
        row.refresh_from_db()
        tag = '"1"' if action == "redrive" else shown

        told = problem(act(row, action, tag), 412)

        assert told["type"] == "urn:timeline:changed-since"
        assert told["remedy"] == "Look at it again, and decide anew."
        seq = row.seq
        row.refresh_from_db()
        assert (row.state, row.seq) == (ACTIONS[action], seq)


class TestTags:
    def test_are_told_by_each_answer_for_the_next_decision(self, by_staff, act, ada, about, clock):
        row = about("account.call", ada, scheduled_at=clock.now + HOUR)
        first = act(row, "move", '"0"')

        assert problem(act(row, "move", '"0"'), 412)
        assert act(row, "move", first.headers["ETag"]).status_code == 200
        [listed] = by_staff.get("tasks/").json()["results"]
        assert act(row, "cancel", f'"{listed["seq"]}"').status_code == 200

    @pytest.mark.parametrize("tag", ["*", '"0"', '"7", "0"', '"0-abc", "x"'])
    def test_of_which_one_is_right_do(self, act, ada, about, clock, tag):
        assert act(about("account.call", ada), "cancel", tag).status_code == 200

    @pytest.mark.parametrize("tag", ['"1"', '"x"', 'W/"0"', '""', '"99999999999"'])
    def test_of_something_else_do_not(self, act, ada, about, clock, tag):
        assert problem(act(about("account.call", ada), "cancel", tag), 412)

    @pytest.mark.parametrize("tag", ["", "0", '"', "x y", '"0" "1"'])
    def test_that_are_none_are_refused(self, act, ada, about, clock, tag):
        assert problem(act(about("account.call", ada), "cancel", tag), 400)["field"] == "If-Match"

    def test_of_a_task_that_one_does_not_see_say_nothing(self, asked_by, ada, person, about):
        row = about("account.greet", person("ben"))
        path = f"{ROOT}/tasks/{row.pk}/cancel/"

        for tag in ('"0"', '"1"', "none"):
            answer = asked_by(ada).client.post(path, {}, content_type="application/json", headers={"If-Match": tag})
            assert answer.status_code == 404


class TestIfNoneMatch:
    def test_leaves_out_what_one_has(self, by_staff, ada, about, clock):
        row = about("account.call", ada)
        path = f"{ROOT}/tasks/{row.pk}/"
        tag = by_staff.client.get(path).headers["ETag"]

        answer = by_staff.client.get(path, headers={"If-None-Match": f'"x", {tag}'})

        assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", tag)
        assert "no-store" in answer.headers["Cache-Control"]

    @pytest.mark.parametrize("change", ["task", "person", "moment"])
    def test_answers_anew_what_reads_otherwise_now(self, by_staff, asked_by, ada, about, clock, change):
        row = about("account.call", ada, scheduled_at=clock.now + HOUR)
        path = f"{ROOT}/tasks/{row.pk}/"
        headers = {"If-None-Match": by_staff.client.get(path).headers["ETag"]}
        client = by_staff.client
        if change == "task":
            move(row, at=clock.now + 2 * HOUR, reason="x")
        if change == "person":
            client = asked_by(ada).client
        if change == "moment":
            clock.advance(2 * HOUR)

        answer = client.get(path, headers=headers)

        assert answer.status_code == 200
        assert answer.headers["ETag"] != headers["If-None-Match"]


def test_the_document_has_the_tag_wherever_it_is_told():
    answers = PATHS[f"{ROOT}/tasks/{{id}}/"]["get"]["responses"]

    assert {status for status, answer in answers.items() if "ETag" in answer.get("headers", {})} == {"200", "304"}


def test_a_redrive_of_what_was_redriven_is_refused(act, ada, about, clock):
    row = about("account.call", ada, state=State.DISCARDED)
    again = act(row, "redrive", '"0"').json()
    cancel(row.__class__.objects.get(pk=again["id"]), reason="no")

    assert "redriven" in problem(act(row, "redrive", '"0"'), 412)["remedy"]


class TestWhatHasChanged:
    def test_is_told_with_who_and_why_to_who_may_read_that(self, act, ada, about, clock):
        row = about("account.call", ada, scheduled_at=clock.now + HOUR)
        move(row, at=clock.now + 2 * HOUR, reason="they are away", actor="ben")

        told = problem(act(row, "cancel", '"0"'), 412)

        [said] = told["changes"]
        assert "it was moved from" in said
        assert said.endswith("they are away, by ben.")

    def test_is_told_to_others_without_that(self, act, ada, about, clock, monkeypatch):
        row = about("account.call", ada, scheduled_at=clock.now + HOUR)
        move(row, at=clock.now + 2 * HOUR, reason="they are away", actor="ben")
        monkeypatch.setattr(TimelinePolicy, "sees_decisions", lambda *_asked: False)

        [said] = problem(act(row, "cancel", '"0"'), 412)["changes"]

        assert "it was moved from" in said
        assert not any(word in said for word in ("away", "ben"))

    def test_is_nothing_to_a_tag_that_never_was(self, act, ada, about, clock):
        assert "changes" not in problem(act(about("account.call", ada), "cancel", '"7"'), 412)
