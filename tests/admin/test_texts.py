"""Texts that users and handlers control stay text, on every page."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry as AdminLogEntry
from django.utils.html import escape

from tests.admin.conftest import ACT, ENTITY, LIST, detail
from timeline import Timeline, task
from timeline.lifecycle import State
from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import schedule
from timeline.testing import only_timelines

# Tags that act when loaded, shown or touched; each also from within an attribute and from within a text element.
TAGS = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//a></sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script>",
    "<iframe src=javascript:alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)>",
    "<object data=javascript:alert(1)>",
    "<style>@import '//a'</style>",
    "<math><mtext></mtext></math>",
    "<base href=//a>",
]
EVIL = [
    *(f"{before}{tag}" for tag in TAGS for before in ("", '">', "'/>")),
    "{{ 7|add:7 }}{% debug %}",
    "';alert(1)//",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "</title><script>alert(1)</script>",
    '" onmouseover=alert(1) x="',
]


@pytest.fixture(params=EVIL)
def evil(request):
    return request.param


@pytest.fixture
def row(evil, person, now):
    """A task that has the text wherever there may be one."""
    ada = person("ada", website=evil)
    type(ada).objects.filter(pk=ada.pk).update(email=evil)
    ref = {"entity_label": "accounts.user", "entity_id": str(ada.pk)}
    event = Event.objects.create(name=evil, key=evil, actor=evil, occurred_at=now, recorded_at=now, **ref)
    run = TimelineRun.objects.create(
        timeline="account", key=evil, started_at=now, started_by=event, ended_at=now, end_reason=evil, **ref
    )
    made = ScheduledTask.objects.create(
        run=run,
        task_key="account.welcome",
        occurrence=evil,
        state=State.DISCARDED,
        queue=evil,
        nominal_at=now,
        scheduled_at=now,
        payload={evil: evil},
        result={evil: [evil]},
        error=evil,
        reason_code="operator",
        reason=evil,
        actor=evil,
        worker=evil,
        attempt=1,
        max_attempts=1,
        cause=event,
        created_at=now,
        finished_at=now,
        **ref,
    )
    steps = [("available", "active"), ("active", "discarded")]
    for seq, (source, end) in enumerate(steps, start=1):
        LogEntry.objects.create(
            task=made,
            seq=seq,
            at=now,
            from_state=source,
            to_state=end,
            attempt=1,
            actor=evil,
            reason_code="operator",
            reason=evil,
            detail={"error": {"class": evil, "message": evil, "traceback": evil}},
        )
    return made


def pages(client, row, evil):
    yield client.get(LIST, {"state": "discarded"})
    yield client.get(LIST, {"q": evil, "timeline": evil, "task": evil, "kind": evil})
    yield client.get(detail(row))
    yield client.get(ENTITY, {"label": row.entity_label, "id": row.entity_id})
    yield client.post(ACT, {"action": "redrive", "task": row.pk, "where": evil})
    yield client.post(ACT, {"action": "cancel", "task": row.pk, "where": evil, "confirmed": 1, "reason": evil})


class TestEveryPage:
    def test_shows_it_as_text(self, operator, row, evil):
        answers = list(pages(operator, row, evil))

        for answer in answers:
            body = answer.content.decode()
            assert answer.status_code == 200
            assert "<script>alert" not in body
            assert "<img src=x" not in body
        assert escape(evil) in answers[2].content.decode()

    def test_shows_a_typed_reason_again_as_text(self, operator, about, order, evil):
        answer = operator.post(
            ACT, {"action": "move", "task": about(order).pk, "confirmed": 1, "reason": evil, "at": evil}
        )

        assert answer.status_code == 200
        assert "<script>alert" not in answer.content.decode()
        assert "<img src=x" not in answer.content.decode()

    def test_shows_a_name_of_an_entity_and_an_actor_as_text(self, person, browse, about, order, evil):
        mallory = person("mallory", *["view_scheduledtask", "cancel_scheduledtask"])
        type(mallory).objects.filter(pk=mallory.pk).update(email=evil)
        mallory.refresh_from_db()
        client, row = browse(mallory), about(order)

        client.post(ACT, {"action": "cancel", "task": row.pk, "confirmed": 1, "reason": evil})
        body = client.get(detail(row)).content.decode()

        assert LogEntry.objects.get(task=row).actor == evil
        assert "<script>alert" not in body
        assert "<img src=x" not in body
        assert AdminLogEntry.objects.count() == 0


class Loud(Timeline):
    """Its handler's message is markup."""

    entity = "testapp.Order"

    @task()
    def shout(self, order):
        raise ValueError(EVIL[0])


def test_a_handlers_own_error_is_text(operator, order, clock):
    with only_timelines(Loud):
        row = schedule("loud.shout", order, at=clock.now).task
        clock.advance(minutes=1)
        body = operator.get(detail(row)).content.decode()

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in body
    assert "<script>alert" not in body


def test_nothing_of_ours_is_inline(operator, order, about):
    """A strict Content-Security-Policy, which the site sends, lets nothing of that kind work."""
    row = about(order)

    for answer in (
        operator.get(LIST),
        operator.get(detail(row)),
        operator.get(ENTITY, {"label": "testapp.order", "id": order.pk}),
    ):
        body = answer.content.decode()
        assert answer["Content-Security-Policy"].startswith("default-src 'self';")
        assert " style=" not in body
        assert "<style" not in body
        assert "onclick" not in body
        assert "<script>" not in body
