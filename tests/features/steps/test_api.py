"""The steps of a task, and the decisions about them."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api import conftest as api
from tests.api.conftest import EVERYTHING, ROOT, Asker
from tests.api.test_tasks import problem
from tests.resting import Billing, Settling, half_settled, recorded, resting, run_once
from timeline.lifecycle import State
from timeline.models import LogEntry, StepRecord
from timeline.policy import TimelinePolicy
from timeline.testing import only_timelines
from timeline.timing import in_utc

_asks_for_the_first_time = api._asks_for_the_first_time  # Fixtures.
_only_these = api._only_these
about = api.about
ada = api.ada
by_staff = api.by_staff
person = api.person
staff = api.staff

DECISIONS = ("step-happened", "forget-step", "go-on")


class CarefulPolicy(TimelinePolicy):
    """Nobody does anything with a task about accounts."""

    def actions(self, user, task):
        return []


@pytest.fixture
def in_doubt(clock, order):
    """A task of which nobody knows whether it has paid."""
    with only_timelines(Billing):
        yield run_once(order, clock)


def body_of(decision, **given):
    return {"reason": "the bank says so"} | ({} if decision == "go-on" else {"step": "transfer"}) | given


class TestDetail:
    def test_has_the_steps_in_their_order(self, by_staff, in_doubt):
        upload, transfer = by_staff.get(f"tasks/{in_doubt.pk}/").json()["steps"]

        assert 0 < upload.pop("seconds") < 60
        assert upload == {
            "name": "upload",
            "kind": "done",
            "task": str(in_doubt.pk),
            "attempt": 1,
            "recorded_at": f"{StepRecord.objects.get(name='upload').recorded_at:%Y-%m-%dT%H:%M:%S.%fZ}",
            "result": {"url": "/invoices/DE89"},
            "done": None,
            "total": None,
        }
        assert (transfer["name"], transfer["kind"], transfer["seconds"], transfer["result"]) == (
            "transfer",
            "begun",
            None,
            None,
        )

    def test_has_how_far_a_loop_and_its_handler_are(self, by_staff, clock, order):
        with only_timelines(Settling):
            note, loop = by_staff.get(f"tasks/{half_settled(order, clock).pk}/").json()["steps"]

        assert {name: note[name] for name in ("kind", "name", "done", "total", "result")} == {
            "kind": "note",
            "name": "(progress)",
            "done": 3,
            "total": 1200,
            "result": "<b>reading</b> the statements",
        }
        assert {name: loop[name] for name in ("kind", "name", "done", "total", "result", "attempt")} == {
            "kind": "loop",
            "name": "settle",
            "done": 2,
            "total": 3,
            "result": {"settled": 2},
            "attempt": 1,
        }

    def test_masks_what_they_gave(self, person, in_doubt):
        answer = Asker(person("viewer", "view_scheduledtask")).get(f"tasks/{in_doubt.pk}/")

        assert answer.json()["masked"]
        assert [step["result"] for step in answer.json()["steps"]] == [None, None]
        assert b"DE89" not in answer.content

    def test_tells_them_in_the_explanation(self, by_staff, in_doubt):
        told = by_staff.get(f"tasks/{in_doubt.pk}/").json()["explanation"]

        begun = in_utc(StepRecord.objects.get(name="transfer").recorded_at)
        assert f"Step transfer: begun in attempt 1 on {begun}, its end is not known." in told
        assert f"It rests until somebody decides, and looks again on {in_utc(in_doubt.scheduled_at)}." in told

    def test_has_none_of_what_was_not_started(self, by_staff, ada, about):
        row = about("account.call", ada)

        with CaptureQueriesContext(connection) as queries:
            assert by_staff.get(f"tasks/{row.pk}/").json()["steps"] == []
        assert not [query for query in queries if "timeline_step" in query["sql"]]

    def test_has_those_of_an_earlier_revision(self, by_staff, ada, about):
        first = about("account.call", ada, state=State.CANCELLED, attempt=1)
        recorded(first, "upload")
        again = about("account.call", ada, revision=2, previous=first)

        assert [step["task"] for step in by_staff.get(f"tasks/{again.pk}/").json()["steps"]] == [str(first.pk)]

    def test_takes_one_query_for_one_as_for_a_hundred(self, by_staff, ada, about):
        for number in (1, 100):
            row = about("account.call", ada, state=State.COMPLETED, attempt=1)
            for place in range(number):
                recorded(row, f"tell#{place}")
            with CaptureQueriesContext(connection) as queries:
                assert len(by_staff.get(f"tasks/{row.pk}/").json()["steps"]) == number
            assert len([query for query in queries if "timeline_step" in query["sql"]]) == 1


class TestDecisions:
    def test_that_it_happened_lets_it_go_on_with_what_it_gave(self, by_staff, in_doubt, clock):
        answer = by_staff.post(f"tasks/{in_doubt.pk}/step-happened/", body_of("step-happened", result={"receipt": 7}))

        assert answer.status_code == 200, answer.content
        assert (answer.json()["state"], answer.json()["actor"]) == ("available", "operator@example.com")
        assert answer.headers["ETag"] == f'"{answer.json()["seq"]}"'
        clock.advance(minutes=1)
        in_doubt.refresh_from_db()
        assert (in_doubt.state, in_doubt.result) == ("completed", [{"url": "/invoices/DE89"}, {"receipt": 7}])

    def test_to_forget_has_it_done_again(self, by_staff, in_doubt):
        assert by_staff.post(f"tasks/{in_doubt.pk}/forget-step/", body_of("forget-step")).status_code == 200

        assert not StepRecord.objects.filter(name="transfer").exists()

    def test_to_go_on_counts_what_is_done(self, by_staff, ada, about):
        row = resting(about, "account.call", ada, in_doubt=False)

        answer = by_staff.post(f"tasks/{row.pk}/go-on/", body_of("go-on"))

        assert answer.json()["state"] == "available"
        assert StepRecord.objects.get().code == ""

    def test_are_among_the_actions_of_what_rests_alone(self, by_staff, ada, about):
        rests, failed = (
            resting(about, "account.call", ada),
            about("account.call", ada, state=State.RETRYABLE, reason_code="error"),
        )

        assert "decide" in by_staff.get(f"tasks/{rests.pk}/").json()["actions"]
        assert "decide" not in by_staff.get(f"tasks/{failed.pk}/").json()["actions"]

    @pytest.mark.parametrize("decision", DECISIONS)
    @pytest.mark.parametrize(("state", "code"), [("scheduled", ""), ("retryable", "error"), ("completed", "done")])
    def test_are_refused_of_what_does_not_rest(self, by_staff, ada, about, decision, state, code):
        """To go on with what is scheduled would be to run it now, which is another permission."""
        row = about("account.call", ada, state=state, reason_code=code, attempt=1)
        recorded(row, "transfer", "begun")

        told = problem(by_staff.post(f"tasks/{row.pk}/{decision}/", body_of(decision)), 409)

        assert told["type"] == "urn:timeline:transition-not-allowed"
        assert told["remedy"] == "It does not wait for a decision about a step."
        assert not LogEntry.objects.filter(task=row).exists()

    @pytest.mark.parametrize("decision", DECISIONS)
    def test_are_refused_by_a_policy_that_says_so(self, by_staff, ada, about, settings, decision):
        settings.TIMELINE = {"POLICY": f"{__name__}.CarefulPolicy"}
        row = resting(about, "account.call", ada)

        problem(by_staff.post(f"tasks/{row.pk}/{decision}/", body_of(decision)), 403)

    @pytest.mark.parametrize("decision", DECISIONS)
    def test_need_their_own_permission(self, person, ada, about, decision):
        row = resting(about, "account.call", ada, in_doubt=decision != "go-on")
        others = Asker(person("others", *(name for name in EVERYTHING if name != "decide_scheduledtask")))
        decides = Asker(person("decides", "view_scheduledtask", "decide_scheduledtask"))

        problem(others.post(f"tasks/{row.pk}/{decision}/", body_of(decision)), 403)
        problem(
            Asker(person("blind", "decide_scheduledtask")).post(f"tasks/{row.pk}/{decision}/", body_of(decision)), 404
        )
        assert decides.post(f"tasks/{row.pk}/{decision}/", body_of(decision)).status_code == 200

    @pytest.mark.parametrize("decision", DECISIONS)
    def test_keep_what_somebody_else_decided_since(self, by_staff, ada, about, decision):
        row = resting(about, "account.call", ada, seq=2, in_doubt=decision != "go-on")
        path = f"{ROOT}/tasks/{row.pk}/{decision}/"

        for tag, status in (('"1"', 412), ('"2"', 200), ('"2"', 412)):
            sent = {"content_type": "application/json", "headers": {"If-Match": tag}}
            assert by_staff.client.post(path, body_of(decision), **sent).status_code == status

    @pytest.mark.parametrize(
        ("decision", "given", "field"),
        [
            ("step-happened", {"step": ""}, "step"),
            ("step-happened", {"step": "gone"}, "step"),
            ("step-happened", {"step": "upload"}, "step"),
            ("step-happened", {"step": 7}, "step"),
            ("step-happened", {"step": "x" * 151}, "step"),
            ("step-happened", {"result": "\x00"}, "result"),
            ("step-happened", {"result": "x" * 70_000}, "result"),
            ("step-happened", {"reason": ""}, "reason"),
            ("forget-step", {"step": "gone"}, "step"),
            ("forget-step", {"result": 7}, "result"),
            ("go-on", {"step": "transfer"}, "step"),
            ("go-on", {}, "step"),
        ],
    )
    def test_say_what_is_wrong_with_what_was_sent(self, by_staff, in_doubt, decision, given, field):
        """The last: it is not known whether the step happened."""
        told = problem(by_staff.post(f"tasks/{in_doubt.pk}/{decision}/", body_of(decision, **given)), 400)

        assert told["field"] == field
        assert StepRecord.objects.get(name="transfer").kind == "begun"
