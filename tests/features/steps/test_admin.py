"""The steps of a task on its page, and the decisions about them: what is shown, to whom, and what is then done."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.admin import conftest as admin
from tests.admin.conftest import ACT, ALL, detail, text_of
from tests.resting import Billing, Changed, Settling, half_settled, recorded, run_once
from timeline.admin.pages import made_for
from timeline.lifecycle import State
from timeline.models import LogEntry, ScheduledTask, StepRecord
from timeline.shortcuts import forget_step, run_now
from timeline.testing import only_timelines

about = admin.about  # Fixtures.
browse = admin.browse
clock = admin.clock
operator = admin.operator
person = admin.person

DECISIONS = ("step_happened", "forget_step", "go_on")
DECIDE = "decide_scheduledtask"


@pytest.fixture
def in_doubt(clock, order):
    """A task of which nobody knows whether it has paid."""
    with only_timelines(Billing):
        yield run_once(order, clock)


@pytest.fixture
def changed(clock, order):
    """A task half of which was done before a deploy took its steps out."""
    with only_timelines(Billing):
        row = run_once(order, clock)
    StepRecord.objects.filter(name="transfer").delete()
    with only_timelines(Changed):
        clock.advance(hours=2)
        row.refresh_from_db()
        assert (row.state, row.reason_code) == ("retryable", "definition")
        yield row


def offered(client, row):
    """Values of the buttons that say something about steps, with the step that each names."""
    forms = re.findall(r"<form.*?</form>", text_of(client.get(detail(row))))
    found = []
    for form in forms:
        name = re.search(r'name="step" value="([^"]*)"', form)
        values = re.findall(r'<button name="action" value="([^"]+)"', form)
        found += [(value, name.group(1) if name else "") for value in values if value in DECISIONS]
    return found


def decide(client, row, decision, step="transfer", **given):
    given = {"action": decision, "task": row.pk, "step": step, "alone": "1"} | given
    return client.post(ACT, given)


def confirm(client, row, decision, step="transfer", **given):
    return decide(client, row, decision, step, **({"confirmed": "1", "reason": "the bank says so"} | given))


class TestProgress:
    def test_is_shown_with_its_note(self, operator, clock, order):
        with only_timelines(Settling):
            text = text_of(operator.get(detail(half_settled(order, clock))))

        assert '<progress value="3" max="1200" aria-label="3 of 1,200"></progress> 3 of 1,200' in text
        assert "&lt;b&gt;reading&lt;/b&gt; the statements" in text
        assert re.search(r"told 2026-03-02 09:0\d:\d\d, in attempt \d", text)
        assert re.search(r"<li>It said on 2026-03-02 09:0\d:\d\d that 3 of 1,200 is done.</li>", text)

    def test_keeps_its_note_from_those_who_may_not_read_it(self, browse, person, clock, order):
        viewer = browse(person("viewer", *(name for name in ALL if name != "view_payload")))
        with only_timelines(Settling):
            text = text_of(viewer.get(detail(half_settled(order, clock))))

        assert "3 of 1,200" in text
        assert "reading" not in text


class TestTheSteps:
    def test_are_a_table_with_what_each_gave(self, operator, in_doubt):
        text = text_of(operator.get(detail(in_doubt)))

        assert "<h2>Steps</h2>" in text
        assert "/invoices/DE89" in text
        assert re.search(
            r"upload</span></td><td>done</td><td data-name=\"Attempt\">1</td><td class=\"tl-at\">2026-03-02 09:00:00",
            text,
        )
        assert re.search(
            r"transfer</span></td><td class=\"tl-in-doubt\">in doubt</td><td data-name=\"Attempt\">1</td>", text
        )

    def test_are_told_in_its_story(self, operator, in_doubt):
        text = text_of(operator.get(detail(in_doubt)))

        assert "<li>Step upload: done in attempt 1 on 2026-03-02 09:00, " in text
        assert "<li>Step transfer: begun in attempt 1 on 2026-03-02 09:00, its end is not known.</li>" in text

    def test_of_an_earlier_revision_say_so(self, operator, about, order):
        first = about(order, state=State.DISCARDED, attempt=2)
        recorded(first, "upload")
        again = about(order, revision=2, previous=first)

        assert '1 <span class="tl-quiet">of an earlier revision</span>' in text_of(operator.get(detail(again)))

    def test_are_not_spoken_of_where_there_are_none(self, operator, about, order):
        for row in (about(order), about(order, state=State.COMPLETED, attempt=1)):
            assert "Steps" not in text_of(operator.get(detail(row)))

    def test_that_loop_say_how_far_they_have_come(self, operator, clock, order):
        with only_timelines(Settling):
            text = text_of(operator.get(detail(half_settled(order, clock))))

        assert re.search(
            r'settle</span><span class="tl-share"><progress value="2" max="3" [^>]*></progress> 2 of 3', text
        )
        assert '<td>half done</td><td data-name="Attempt">1</td>' in text
        assert "&quot;settled&quot;: 2" in text
        assert "<li>Step settle: 2 of 3 done by 2026-03-02 09:00:00.</li>" in text

    def test_of_a_loop_in_its_first_batch_are_of_no_attempt(self, operator, about, order):
        row = about(order, state=State.ACTIVE, attempt=1)
        recorded(row, "settle", "loop", attempt=0, done=0, total=0)

        assert '<td>under way</td><td data-name="Attempt">–</td>' in text_of(operator.get(detail(row)))

    def test_keep_what_they_gave_from_those_who_may_not_read_it(self, browse, person, in_doubt):
        text = text_of(
            browse(person("viewer", *(name for name in ALL if name != "view_payload"))).get(detail(in_doubt))
        )

        assert "DE89" not in text
        assert "upload" in text
        assert "not shown: you may not view payloads" in text

    def test_that_run_right_now_are_under_way(self, operator, about, order):
        row = about(order, state=State.ACTIVE, attempt=1)
        recorded(row, "transfer", "begun")

        assert "under way" in text_of(operator.get(detail(row)))

    def test_cost_as_many_queries_for_one_as_for_two_hundred(self, operator, about, order):
        counts = []
        for number in (1, 200):
            row = about(
                order, state=State.RETRYABLE, reason_code="definition", reason="the code has changed", attempt=1
            )
            for place in range(number):
                recorded(row, f"tell#{place}", result={"place": place})
            with CaptureQueriesContext(connection) as queries:
                operator.get(detail(row))
            counts.append(len(queries))

        assert counts[0] == counts[1]

    def test_cost_no_query_where_nothing_was_started(self, operator, about, order):
        row = about(order)

        with CaptureQueriesContext(connection) as queries:
            operator.get(detail(row))

        assert not [query for query in queries if "timeline_step" in query["sql"]]

    def test_of_very_many_are_the_latest_and_those_in_doubt(self, operator, about, order):
        row = about(order, state=State.RETRYABLE, reason_code="in_doubt", attempt=1)
        recorded(row, "first", "begun")
        for place in range(201):
            recorded(row, f"tell#{place}")

        text = text_of(operator.get(detail(row)))

        assert "Only the latest steps are shown." in text
        assert text.count('<td class="tl-step') == 201
        assert ">tell#0<" not in text
        assert ">first<" in text
        assert "<li>181 steps more are done, earlier.</li>" in text


class TestWhatIsOffered:
    def test_in_doubt_is_to_say_that_it_happened_or_to_do_it_again(self, operator, in_doubt):
        assert offered(operator, in_doubt) == [("step_happened", "transfer"), ("forget_step", "transfer")]
        assert "Nobody knows whether this happened." in text_of(operator.get(detail(in_doubt)))

    def test_after_a_change_is_to_go_on_or_to_do_a_step_again(self, operator, changed):
        assert offered(operator, changed) == [("go_on", ""), ("forget_step", "upload")]
        assert "Its code has changed" in text_of(operator.get(detail(changed)))

    def test_after_a_change_what_is_in_doubt_comes_first(self, operator, about, order):
        """To go on would be refused."""
        row = about(order, state=State.RETRYABLE, reason_code="definition", reason="the code has changed", attempt=1)
        recorded(row, "upload")
        recorded(row, "transfer", "begun")

        assert offered(operator, row) == [("step_happened", "transfer"), ("forget_step", "transfer")]

    def test_needs_the_permission(self, browse, person, in_doubt, changed):
        client = browse(person("others", *(name for name in ALL if name != DECIDE)))

        for row in (in_doubt, changed):
            text = text_of(client.get(detail(row)))
            assert offered(client, row) == []
            assert "tl-decisions" in text
            assert "You may not decide about its steps." in text

    def test_is_nothing_where_it_does_not_rest(self, operator, about, order):
        for columns in ({"state": State.RETRYABLE, "reason_code": "error"}, {"state": State.ACTIVE}):
            row = about(order, attempt=1, **columns)
            recorded(row, "upload")
            assert offered(operator, row) == []
            assert "tl-decisions" not in text_of(operator.get(detail(row)))

    def test_is_not_among_the_actions_of_many(self, operator, in_doubt):
        assert 'value="decide"' not in text_of(operator.get(detail(in_doubt)))
        assert operator.post(ACT, {"action": "decide", "task": in_doubt.pk}).status_code == 404


class TestDeciding:
    def test_that_it_happened_is_recorded_with_what_it_gave(self, operator, in_doubt, clock):
        response = confirm(operator, in_doubt, "step_happened", result='{"receipt": 7}')

        assert response.url == detail(in_doubt)
        assert "Step transfer counts as done. The task goes on." in text_of(operator.get(response.url))
        entry = LogEntry.objects.filter(task=in_doubt).latest("seq")
        assert (entry.reason, entry.actor) == ("the bank says so", "operator@example.com")
        clock.advance(minutes=1)
        in_doubt.refresh_from_db()
        assert (in_doubt.state, in_doubt.result) == ("completed", [{"url": "/invoices/DE89"}, {"receipt": 7}])

    def test_that_it_happened_may_have_given_nothing(self, operator, in_doubt):
        confirm(operator, in_doubt, "step_happened", result="")

        assert StepRecord.objects.get(name="transfer").kind == "done"
        assert StepRecord.objects.get(name="transfer").result is None

    def test_that_it_is_done_again_forgets_it(self, operator, in_doubt):
        response = confirm(operator, in_doubt, "forget_step")

        assert "Step transfer is forgotten." in text_of(operator.get(response.url))
        assert not StepRecord.objects.filter(name="transfer").exists()

    def test_to_go_on_lets_it_go_on(self, operator, changed, clock):
        confirm(operator, changed, "go_on")
        clock.advance(minutes=1)

        changed.refresh_from_db()
        assert (changed.state, changed.result) == ("completed", "paid")

    @pytest.mark.parametrize("decision", DECISIONS)
    def test_asks_first_and_says_what_it_means(self, operator, in_doubt, decision):
        response = decide(operator, in_doubt, decision)

        text = text_of(response)
        assert "1 task will change" in text
        assert f'name="action" value="{decision}"' in text
        assert ("transfer" in text.partition("</h1>")[0].rpartition("<h1>")[2]) == (decision != "go_on")
        assert ('<textarea name="result"' in text) == (decision == "step_happened")
        assert StepRecord.objects.get(name="transfer").kind == "begun"

    @pytest.mark.parametrize("decision", DECISIONS)
    def test_needs_its_own_permission(self, browse, person, in_doubt, decision):
        others = person("others", *(name for name in ALL if name != DECIDE))

        assert decide(browse(others), in_doubt, decision).status_code == 403
        assert confirm(browse(others), in_doubt, decision).status_code == 403
        others.user_permissions.set(Permission.objects.filter(codename__in=["view_scheduledtask", DECIDE]))
        assert confirm(browse(others), in_doubt, decision).status_code == (200 if decision == "go_on" else 302)

    def test_is_not_found_for_what_one_may_not_see(self, browse, person, in_doubt):
        assert confirm(browse(person("staff", DECIDE)), in_doubt, "forget_step").status_code == 404

    @pytest.mark.parametrize("decision", DECISIONS)
    def test_changes_nothing_where_it_does_not_rest(self, operator, about, order, decision):
        for columns in ({"state": State.RETRYABLE, "reason_code": "error"}, {"state": State.SCHEDULED}):
            row = about(order, **columns)
            recorded(row, "transfer", "begun")

            response = confirm(operator, row, decision)

            assert response.status_code == 200
            assert not LogEntry.objects.filter(task=row).exists()
            assert "1 task stays as it is" in text_of(response)

    @pytest.mark.parametrize("decision", DECISIONS)
    def test_is_about_one_task_at_a_time(self, operator, about, order, decision):
        rows = [about(order, state=State.RETRYABLE, reason_code="in_doubt", attempt=1) for _ in range(2)]

        assert confirm(operator, rows[0], decision, task=[row.pk for row in rows]).status_code == 404

    def test_says_so_if_somebody_else_was_faster(self, operator, in_doubt):
        seen = re.findall(r'name="seen" value="([^"]+)"', text_of(decide(operator, in_doubt, "step_happened")))
        forget_step(in_doubt, "transfer", reason="I was faster")

        text = text_of(confirm(operator, in_doubt, "step_happened", seen=seen))

        assert "Nothing was changed" in text
        assert not StepRecord.objects.filter(name="transfer").exists()

    def test_says_so_if_it_has_rested_anew_since(self, operator, in_doubt, clock):
        seen = re.findall(r'name="seen" value="([^"]+)"', text_of(decide(operator, in_doubt, "forget_step")))
        run_now(in_doubt, reason="look again")
        clock.advance(minutes=1)

        text = text_of(confirm(operator, in_doubt, "forget_step", seen=seen))

        assert f"({in_doubt.pk}) has changed since you looked." in text
        assert StepRecord.objects.filter(name="transfer").exists()

    @pytest.mark.parametrize("step", ["", "gone", "upload\x00"])
    def test_of_a_step_that_is_none_says_which_there_are(self, operator, in_doubt, step):
        assert "Recorded are: upload, transfer." in text_of(confirm(operator, in_doubt, "forget_step", step))

    def test_to_go_on_is_refused_while_a_step_is_in_doubt(self, operator, in_doubt):
        assert "transfer may have happened." in text_of(confirm(operator, in_doubt, "go_on"))

    def test_finds_a_step_whose_key_has_a_line_break(self, operator, about, order):
        """Browsers send another one than they were given."""
        row = about(order, state=State.RETRYABLE, reason_code="in_doubt", attempt=1)
        recorded(row, "tell#a\nb", "begun")

        assert confirm(operator, row, "forget_step", "tell#a\r\nb").status_code == 302

    @pytest.mark.parametrize(
        ("result", "said"),
        [
            ("{", "This is no JSON"),
            ("receipt 7", "This is no JSON"),
            ("[" * 100_000, "This is no JSON"),
            ("[" * 70 + "]" * 70, "nested deeper"),
            ("NaN", "JSON does not know"),
            ('"\\u0000"', "no database stores"),
            (f'"{"x" * 70_000}"', "bytes of JSON, over"),
        ],
    )
    def test_refuses_what_no_step_could_return(self, operator, in_doubt, result, said):
        response = confirm(operator, in_doubt, "step_happened", result=result)

        assert list(response.context["form"].errors) == ["result"]
        assert said in text_of(response)
        assert StepRecord.objects.get(name="transfer").kind == "begun"

    def test_is_asked_anew_after_a_login(self, person, in_doubt):
        user, client = person("operator", *ALL), Client()

        response = confirm(client, in_doubt, "step_happened", result='{"receipt": 7}', who=made_for(user))
        user.set_password("of the tests only")
        user.save()
        back = client.post(response.url, {"username": user.email, "password": "of the tests only"}, follow=True)

        text = text_of(back)
        assert "You had to log in again. Nothing was changed" in text
        assert "{&quot;receipt&quot;: 7}</textarea>" in text
        assert 'name="step" value="transfer"' in text
        assert confirm(client, in_doubt, "step_happened", result='{"receipt": 7}').status_code == 302


def test_decisions_are_about_what_is_seen_on_the_page(operator, in_doubt, clock):
    """From the page of the task to its end, by its own forms."""
    assert offered(operator, in_doubt)[0] == ("step_happened", "transfer")
    asked = text_of(decide(operator, in_doubt, "step_happened"))
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', asked))
    fields.pop("csrfmiddlewaretoken", None)

    operator.post(ACT, {**fields, "result": "", "reason": "seen on the statement"})
    clock.advance(timedelta(minutes=1))

    assert ScheduledTask.objects.get(pk=in_doubt.pk).state == "completed"
