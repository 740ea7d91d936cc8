"""The page that acts on all that match: what it counts, what it changes, and what it leaves."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import LIST, text_of
from tests.testapp.models import Order
from timeline.admin import act_on_all, portions
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import cancel

ALL_OF_IT = reverse("admin:timeline_scheduledtask_matching")
CANCEL = f"{ALL_OF_IT}?task=care.call&action=cancel"


@pytest.fixture
def calls(order, about):
    """Seven calls that are ahead, and a greeting."""
    about(order, 5, task_key="care.greet")
    return [about(Order.objects.create(), hours + 1) for hours in range(7)]


def states(task_key="care.call"):
    return sorted(ScheduledTask.objects.filter(task_key=task_key).values_list("state", flat=True))


class TestWhatIsOffered:
    def test_is_what_some_of_them_allow_with_how_many(self, operator, calls, about, order):
        about(order, -3, state=State.DISCARDED, task_key="care.call")

        text = text_of(operator.get(ALL_OF_IT, {"task": "care.call", "state": "all"}))

        assert "8 tasks match" in text
        assert "Cancel 7 tasks…" in text
        assert "Run 1 task again…" in text

    def test_leads_there_from_the_list_and_back(self, operator, calls):
        text = text_of(operator.get(LIST, {"task": "care.call"}))
        assert f'href="{ALL_OF_IT}?task=care.call"' in text

        text = text_of(operator.get(ALL_OF_IT, {"task": "care.call"}))
        assert f'href="{LIST}?task=care.call"' in text
        assert 'href="?task=care.call&amp;action=cancel"' in text

    def test_is_nothing_to_who_may_do_nothing(self, browse, person, calls):
        client = browse(person("viewer", "view_scheduledtask", is_staff=True))

        assert "Nothing can be done with these tasks, by you." in text_of(client.get(ALL_OF_IT))
        assert client.get(CANCEL).status_code == 403
        assert client.post(CANCEL, {"reason": "x"}).status_code == 403

    @pytest.mark.parametrize("action", ["approve", "step_happened", "delete", "cancel\x00"])
    def test_is_nothing_else(self, operator, calls, action):
        assert operator.get(ALL_OF_IT, {"action": action}).status_code == 404

    def test_costs_as_many_queries_for_many(self, operator, about, order):
        counts = []
        for number in (3, 30):
            for hours in range(number):
                about(order, hours)
            with CaptureQueriesContext(connection) as queries:
                operator.get(CANCEL)
            counts.append(len(queries))

        assert counts[0] == counts[1] <= 12


class TestActingOnAll:
    def test_asks_why_first(self, operator, calls):
        response = operator.get(CANCEL)
        assert "Cancel 7 tasks" in text_of(response)
        assert len(response.context["rows"]) == 7

        assert "This field is required." in text_of(operator.post(CANCEL, {"reason": ""}))
        assert states() == ["scheduled"] * 7

    def test_changes_all_that_match_and_nothing_else(self, operator, calls):
        response = operator.post(CANCEL, {"reason": "the campaign is over"}, follow=True)

        assert "7 tasks were cancelled." in text_of(response)
        assert states() == ["cancelled"] * 7
        assert states("care.greet") == ["scheduled"]
        assert {(row.reason, row.actor) for row in ScheduledTask.objects.filter(state="cancelled")} == {
            ("the campaign is over", "operator@example.com")
        }

    def test_moves_them_to_a_time(self, operator, calls, clock):
        at = clock.now + timedelta(days=2)
        where = f"{ALL_OF_IT}?task=care.call&action=move"

        operator.post(where, {"reason": "later", "at": at.strftime("%Y-%m-%dT%H:%M")})

        assert {row.scheduled_at for row in ScheduledTask.objects.filter(task_key="care.call")} == {at}

    def test_goes_on_portion_by_portion(self, operator, calls, monkeypatch):
        monkeypatch.setattr(portions, "PORTION", 3)
        monkeypatch.setattr(portions, "A_TURN", 0)

        response = operator.post(CANCEL, {"reason": "over"})
        assert states().count("cancelled") == 3
        assert "3 of 7" in text_of(response)
        place = response.context["place"]
        given = place._asdict() | {"before": place.before.isoformat(), "reason": "over"}
        response = operator.post(CANCEL, given)
        assert states().count("cancelled") == 6
        assert "6 of 7" in text_of(response)
        assert [name for name, _value in response.context["hidden"]] == ["reason"]

    def test_asks_again_where_its_time_has_passed_meanwhile(self, operator, calls, clock, monkeypatch):
        """The page does not send itself again and again then, and says that a part is done."""
        monkeypatch.setattr(portions, "PORTION", 3)
        monkeypatch.setattr(portions, "A_TURN", 0)
        where, at = f"{ALL_OF_IT}?task=care.call&action=move", clock.now + timedelta(minutes=1)
        given = {"reason": "later", "at": at.strftime("%Y-%m-%dT%H:%M")}
        place = operator.post(where, given).context["place"]
        sent = place._asdict() | {"before": place.before.isoformat()}
        clock.set(at)

        text = text_of(operator.post(where, given | sent))

        assert "data-timeline-going-on" not in text
        assert "3 of 7" in text
        assert "Nothing was changed yet" not in text
        assert "This time has passed" in text
        assert 'name="at"' in text
        given["at"] = (at + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
        operator.post(where, given | sent)
        moved = ScheduledTask.objects.filter(task_key="care.call", scheduled_at=at + timedelta(days=1))
        assert moved.count() == 3

    def test_leaves_what_came_since_it_was_counted(self, operator, calls, about, order, clock, monkeypatch):
        place = {"after": "", "changed": 0, "left": 0, "total": 7, "before": clock.now.isoformat()}
        clock.set(clock.now + timedelta(minutes=1))
        late = about(order, 9)
        ScheduledTask.objects.filter(pk=late.pk).update(created_at=clock.now)

        operator.post(CANCEL, {"reason": "over", **place})

        late.refresh_from_db()
        assert late.state == "scheduled"
        assert states().count("cancelled") == 7

    def test_leaves_what_has_changed_meanwhile_and_says_so(self, operator, calls, monkeypatch):
        def sooner(*given, **more):
            if ScheduledTask.objects.filter(pk=calls[0].pk, state="scheduled").exists():
                cancel(calls[0], reason="by phone")
            return performed(*given, **more)

        performed = act_on_all.perform
        monkeypatch.setattr(act_on_all, "perform", sooner)

        response = operator.post(CANCEL, {"reason": "over"}, follow=True)

        assert states() == ["cancelled"] * 7
        assert "6 tasks were cancelled." in text_of(response)
        assert "1 task stays as it is" in text_of(response)

    def test_does_not_find_what_does_not_match(self, operator, calls):
        assert operator.get(f"{ALL_OF_IT}?task=care.gone&action=cancel").status_code == 404
        assert operator.post(f"{ALL_OF_IT}?task=care.gone&action=cancel", {"reason": "x"}).status_code == 404

    @pytest.mark.parametrize("forged", [{"before": "soon"}, {"after": "x"}, {"total": "-1"}, {"changed": "9" * 40}])
    def test_begins_anew_or_goes_on_whatever_is_sent_for_the_place(self, operator, calls, clock, forged):
        place = {"before": clock.now.isoformat(), "after": "", "changed": "0", "left": "0", "total": "7"}

        assert operator.post(CANCEL, {"reason": "over", **place, **forged}).status_code in (200, 302)


class TestWhoActs:
    def test_changes_only_what_they_may_see(self, browse, person, about):
        ada, ben = person("ada", "cancel_scheduledtask", is_staff=True), person("ben")
        about(ada, 3, task_key="account.welcome")
        about(ben, 3, task_key="account.welcome")
        client = browse(ada)

        text = text_of(client.get(ALL_OF_IT))

        assert "1 task matches" in text
