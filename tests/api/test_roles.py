"""Who gets what at which route: each operation of the schema asked by each kind of person."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

import pytest
from django.db import connection, transaction

from tests.api.conftest import EVERYTHING, ROOT, Account, Accounting, Asker, Seating
from tests.api.test_webhooks import RULES as OF_WEBHOOKS
from tests.features.bulk_actions.bulk import bulk_action  # of bulk_actions
from tests.openapi import committed
from tests.resting import recorded, resting
from timeline import Timeline, approval, at, task
from timeline.features.bulk_actions.poll import begin_bulk  # of bulk_actions
from timeline.lifecycle import State
from timeline.models import BulkAction, Event, Hold, LogEntry, ScheduledTask, StepRecord, Taking, TimelineRun
from timeline.shortcuts import emit, hold
from timeline.testing import only_timelines

PATHS = committed()["paths"]
OPERATIONS = sorted((method.upper(), path.removeprefix(ROOT)) for path, found in PATHS.items() for method in found)

VIEW = "view_scheduledtask"
GROUP = "1f" * 8  # What failed alike.
ROLES = {
    "anonymous": None,
    "owner": [],
    "other": [],
    "staff": [],
    **{f"staff with {name}": [name] for name in EVERYTHING},
    **{f"staff with {VIEW} and {name}": [VIEW, name] for name in EVERYTHING if name != VIEW},
}


class Rule(NamedTuple):
    """What an operation asks for: to see the row or whom it is about, or one of some permissions; a permission."""

    sees: bool
    permission: str = ""
    status: int = 200
    shown_with: tuple[str, ...] = ()


RULES = {
    ("GET", "/tasks/"): Rule(sees=False),
    ("GET", "/me/tasks/"): Rule(sees=False),
    ("GET", "/tasks/{id}/"): Rule(sees=True),
    ("GET", "/users/{id}/tasks/"): Rule(sees=True),
    ("GET", "/entities/{label}/{id}/tasks/"): Rule(sees=True),
    ("POST", "/tasks/{id}/cancel/"): Rule(sees=True, permission="cancel_scheduledtask"),
    ("POST", "/tasks/{id}/move/"): Rule(sees=True, permission="move_scheduledtask"),
    ("POST", "/tasks/{id}/run-now/"): Rule(sees=True, permission="run_now_scheduledtask"),
    ("POST", "/tasks/{id}/redrive/"): Rule(sees=True, permission="redrive_scheduledtask"),
    ("POST", "/tasks/{id}/step-happened/"): Rule(sees=True, permission="decide_scheduledtask"),
    ("POST", "/tasks/{id}/forget-step/"): Rule(sees=True, permission="decide_scheduledtask"),
    ("POST", "/tasks/{id}/go-on/"): Rule(sees=True, permission="decide_scheduledtask"),
    ("GET", "/dead-letters/"): Rule(sees=False),
    ("POST", "/dead-letters/{group}/redrive/"): Rule(sees=True, permission="redrive_scheduledtask"),
    ("POST", "/tasks/{id}/approve/"): Rule(sees=True, permission="decide_scheduledtask"),
    ("POST", "/tasks/{id}/reject/"): Rule(sees=True, permission="decide_scheduledtask"),
    ("POST", "/waiting/{id}/take/"): Rule(sees=True, permission="decide_scheduledtask"),
    ("POST", "/waiting/{id}/hand-over/"): Rule(sees=True, permission="decide_scheduledtask", status=400),  # To nobody.
    ("GET", "/holds/"): Rule(sees=False),
    ("POST", "/holds/"): Rule(sees=False, permission="hold_tasks", status=201),
    ("POST", "/holds/{id}/release/"): Rule(sees=False, permission="hold_tasks", shown_with=("view_hold", "hold_tasks")),
    ("POST", "/tasks/bulk/"): Rule(sees=False, permission="cancel_scheduledtask", status=202),  # of bulk_actions
    ("GET", "/tasks/bulk/{id}/"): Rule(sees=False, shown_with=(VIEW,)),  # of bulk_actions
    ("POST", "/tasks/bulk/{id}/stop/"): Rule(  # of bulk_actions
        sees=False, permission="cancel_scheduledtask", shown_with=(VIEW,)
    ),
    ("POST", "/entities/{label}/{id}/preview/"): Rule(sees=True),
    ("POST", "/events/"): Rule(sees=False, permission="add_event", status=201),
}


class Refunding(Timeline):
    """Decided about by who has one of our permissions; as a rule it is one of the host's."""

    entity = "accounts.User"
    starts_on = "refund.asked"

    @task(approval("refund", by="timeline.decide_scheduledtask", within=timedelta(days=2)))
    def refund(self, user): ...


class Ending(Timeline):
    """Follows a date of the account."""

    entity = "accounts.User"

    @task(at("trial_ends_at"))
    def end(self, user): ...


@pytest.fixture(autouse=True)
def _these(_only_these):
    with only_timelines(Account, Seating, Accounting, Refunding, Ending):
        yield


def expected(rule, role):
    """The status that the rules say."""
    if role == "anonymous":
        return 403
    if rule.sees and role != "owner" and VIEW not in ROLES[role]:
        return 404
    if rule.shown_with and not set(rule.shown_with) & set(ROLES[role]):
        return 404
    return rule.status if not rule.permission or rule.permission in ROLES[role] else 403


def fingerprint():
    """All rows of ours as they are in the database: as it gives them, which is quick, and done for each role."""
    quote, rows = connection.ops.quote_name, []
    with connection.cursor() as cursor:
        for model in (ScheduledTask, LogEntry, TimelineRun, Event, StepRecord, Hold, BulkAction, Taking):
            table, key = map(quote, (model._meta.db_table, model._meta.pk.column))
            cursor.execute(f"SELECT * FROM {table} ORDER BY {key}")  # noqa: S608 (names of Django's)
            rows.append(cursor.fetchall())
    return rows


def named_in(found):
    """Keys of all rows that an answer shows."""
    if isinstance(found, list):
        return {key for item in found for key in named_in(item)}
    if not isinstance(found, dict):
        return set()
    own = {found["id"]} if "scheduled_at" in found else {found["run"]} if "expected_at" in found else set()
    return own | {key for item in found.values() for key in named_in(item)}


@pytest.fixture
def ask(person, ada, about, clock):
    """
    Ask an operation about Ada's row in the name of each role: what was there before, and for each role the answer, the keys of
    what it may see, and what is there then. All find the same: what the one before changed is undone.
    """

    def run(method, path):
        other = person("other", is_staff=False)
        people = {"anonymous": None, "owner": ada, "other": other}
        for one in (ada, other):
            emit("user.created", one)
        state = State.DISCARDED if "redrive" in path else State.SCHEDULED
        if path.endswith(STEPS):
            row = resting(about, "account.call", ada, in_doubt="go-on" not in path, payload={"word": "secret"})
        elif path.endswith(("/approve/", "/reject/", "/take/", "/hand-over/")):
            emit("refund.asked", ada)
            row = ScheduledTask.objects.get(task_key="refunding.refund")
        else:
            row = about("account.call", ada, state=state, attempt=1, fingerprint=GROUP, payload={"word": "secret"})
        recorded(row, "upload", result="secret")
        asked = asked_in_bulk()  # of bulk_actions
        keys = {
            "tasks/bulk/{id}": asked.pk,  # of bulk_actions
            "tasks/{id}": row.pk,
            "waiting/{id}": row.pk,
            "holds/{id}": hold(task="account.call", reason="a reason that is kept").pk,
        }
        key = next((key for known, key in keys.items() if known in path), ada.pk)
        filled = path.replace("{group}", GROUP).replace("{label}", "accounts.user").replace("{id}", str(key))
        body = body_of(path, ada)
        before = fingerprint()
        answers = {}
        for role, permissions in ROLES.items():
            with undone():
                user = people[role] if role in people else person("staff", *permissions, is_staff=True)
                asker = Asker(user)
                answer = asker.get(filled.lstrip("/")) if method == "GET" else asker.post(filled.lstrip("/"), body)
                answers[role] = answer, keys_seen(user, role), fingerprint()
        return before, answers

    return run


def asked_in_bulk():  # of bulk_actions
    return begin_bulk(bulk_action("cancel", asker="0"), ScheduledTask.objects.all(), using="default")


@contextmanager
def undone():
    """Undo at the end what is written meanwhile."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def body_of(path, ada):
    """What an operation is sent."""
    more = {
        "/tasks/{id}/move/": {"at": "2027-01-01T00:00:00Z"},
        "/tasks/{id}/step-happened/": {"step": "transfer"},
        "/tasks/{id}/forget-step/": {"step": "transfer"},
        "/tasks/bulk/": {"action": "cancel", "filter": {"task": "account.call"}},  # of bulk_actions
        "/entities/{label}/{id}/preview/": {"anchors": {"trial_ends_at": "2027-01-01T00:00:00Z"}},
        "/holds/": {"scope": "timeline", "target": "account"},
    }
    if "/waiting/" in path:
        return {"to": "nobody@example.com"} if path.endswith("/hand-over/") else {}
    if "events" in path:
        return {"name": "user.created", "entity": {"label": "accounts.user", "id": str(ada.pk)}}
    if path.endswith("/preview/"):
        return more[path]
    return {"reason": "x"} | more.get(path, {})


STEPS = ("/step-happened/", "/forget-step/", "/go-on/")


def keys_seen(user, role):
    """Keys of tasks and runs that a role may see, as the rules say."""
    everything = ScheduledTask.objects.all(), TimelineRun.objects.all()
    if role == "anonymous":
        return set()
    rows = everything if VIEW in ROLES[role] else [some.for_entity(user) for some in everything]
    return {str(row.pk) for some in rows for row in some}


class TestMatrix:
    def test_knows_each_route_of_the_schema(self):
        assert sorted(RULES | OF_WEBHOOKS) == OPERATIONS

    @pytest.mark.parametrize(("method", "path"), RULES)
    def test_is_kept(self, ask, method, path):
        rule = RULES[method, path]

        before, answers = ask(method, path)

        assert list(answers) == list(ROLES)
        for role, (answer, seen, after) in answers.items():
            assert answer.status_code == expected(rule, role), (role, answer.content)
            assert named_in(answer.json()) <= seen, role
            changes_nothing = method == "GET" or path.endswith("/preview/") or answer.status_code >= 400
            assert (after == before) == changes_nothing, role
            shown = answer.content.replace(b"a reason that is kept", b"")
            assert shown == answer.content or {VIEW, "view_hold", "hold_tasks"} & set(ROLES[role]), role
            if "view_payload" not in (ROLES[role] or []):
                assert b"secret" not in shown, role
