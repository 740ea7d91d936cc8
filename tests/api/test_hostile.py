"""What is sent to do harm: texts that formats, databases or encodings choke on, in each place that takes text."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from django.conf import settings

from tests.api.conftest import ROOT
from tests.resting import resting
from timeline.lifecycle import State

TEXTS = {
    "a percent sign": "%",
    "a placeholder": "%(name)s %s %d",
    "braces": "{0} {name} {}",
    "NUL": "a\x00b",
    "half a pair": "\ud800",
    "the other half": "a\udfff",
    "markup": "<b>&\"'",
    "backwards": "\u202ea",
    "far away": "\U0010ffff",
    "long": "x" * 5000,
}
PARAMETERS = {
    "tasks/": ["state", "task", "timeline", "due_after", "due_before", "cursor", "limit", "ordering", "nothing"],
    "me/tasks/": ["part", "cursor", "limit", "nothing"],
    "schema/": ["nothing"],
}
HEADERS = ["Accept", "Accept-Language", "Authorization", "If-Match", "If-None-Match", "Idempotency-Key"]


@pytest.fixture(params=TEXTS.values(), ids=TEXTS.keys())
def text(request):
    return request.param


@pytest.fixture
def client(by_staff):
    """Does not raise what the server would answer with 500."""
    by_staff.client.raise_request_exception = False
    return by_staff.client


def percent(text):
    return quote(text.encode(errors="surrogatepass"), safe="")


def post(client, path, body):
    return client.post(f"{ROOT}/{path}", json.dumps(body), content_type="application/json")


def each_event(ada, text):
    """An event with the text in each of its places, as a value and as a name."""
    entity = {"label": "accounts.user", "id": str(ada.pk)}
    event = {"name": "user.greeted", "entity": entity, "key": "k", "payload": {}}
    yield from ({**event, name: text} for name in ["name", "key", "occurred_at", "payload", "entity", text])
    yield from ({**event, "entity": {**entity, name: text}} for name in ["label", "id", text])
    yield from ({**event, "payload": payload} for payload in ({text: 1}, {"a": [text]}, {"a": {"b": [{text: 1}]}}))


class TestHostileTexts:
    def test_are_taken_or_refused_as_parameters(self, client, text):
        for path, names in PARAMETERS.items():
            for name in names:
                answer = client.get(f"{ROOT}/{path}?{name}={percent(text)}")
                assert answer.status_code in (200, 400), (path, name)
                answer.json()
            assert client.get(f"{ROOT}/{path}?{percent(text)}=1").status_code == 400

    def test_are_told_as_they_were_sent(self, client, text):
        told = client.get(f"{ROOT}/tasks/?state={percent(text)}").json()["detail"]

        assert text.encode(errors="replace").decode() in told or "�" in told

    def test_are_not_there_as_a_path(self, client, text):
        for path in ["tasks/%s/", "users/%s/tasks/", "entities/%s/1/tasks/", "entities/accounts.user/%s/tasks/", "%s/"]:
            assert client.get(f"{ROOT}/{path.replace('%s', percent(text))}").status_code == 404, path

    def test_are_taken_or_refused_in_the_body_of_an_action(self, client, ada, about, text):
        row = about("account.greet", ada)
        done = about("account.greet", ada, state=State.DISCARDED)
        for action, task in {"cancel": done, "move": done, "run-now": done, "redrive": row}.items():
            for name in ["reason", "at", text]:
                answer = post(client, f"tasks/{task.pk}/{action}/", {"reason": "x", name: text})
                assert answer.status_code in (400, 409), (action, name)
                answer.json()

    def test_are_taken_or_refused_in_a_decision(self, client, ada, about, text):
        row = resting(about, "account.greet", ada)
        for result in [text, {text: text}, [text]]:
            body = {"step": "transfer", "reason": "x", "result": result}
            answer = post(client, f"tasks/{row.pk}/step-happened/", body)
            assert answer.status_code in (200, 400, 409), result
            answer.json()
        answer = post(client, f"tasks/{row.pk}/forget-step/", {"step": text, "reason": "x"})
        assert answer.status_code in (400, 409)
        answer.json()

    def test_are_taken_or_refused_in_an_event(self, client, ada, text):
        for event in each_event(ada, text):
            answer = post(client, "events/", event)
            assert answer.status_code in (200, 201, 400, 409), event
            answer.json()

    def test_are_taken_or_refused_in_a_hold_a_bulk_action_and_an_endpoint(self, client, text):
        """Also where one of a few words is asked for."""
        bodies = {
            "holds/": {"scope": "task", "target": "account.greet", "reason": "x", "then": "run"},
            "tasks/bulk/": {"action": "cancel", "filter": {"task": "account.greet"}, "reason": "x"},  # of bulk_actions
            "webhooks/endpoints/": {"url": "https://receiver.example.com/", "topics": ["account"], "ordered": "entity"},
        }
        for path, body in bodies.items():
            for name in [*body, "nothing"]:
                for value in (text, [text], {"state": [text]}):
                    answer = post(client, path, {**body, name: value})
                    assert answer.status_code in (200, 201, 202, 400, 403), (path, name, value)
                    answer.json()

    def test_are_taken_or_refused_in_a_header(self, client, ada, about, text):
        row = about("account.greet", ada)
        sent = text.encode(errors="surrogatepass").decode("latin-1")  # As WSGI gives headers.
        for header in HEADERS:
            named = {f"HTTP_{header.upper().replace('-', '_')}": sent}
            path = f"{ROOT}/tasks/{row.pk}/"
            assert client.get(path, **named).status_code < 500, header
            answer = client.post(f"{path}run-now/", {"reason": ""}, content_type="application/json", **named)
            assert answer.status_code in (400, 403, 412), header
        assert client.post(f"{path}run-now/", "x", content_type=sent).status_code in (400, 415)

    def test_log_nobody_in(self, client, text):
        """A cookie can spell NUL as well."""
        octal = "".join(f"\\{byte:03o}" for byte in f"{text:_<40}".encode(errors="surrogatepass"))
        client.cookies.clear()

        answer = client.get(f"{ROOT}/tasks/", HTTP_COOKIE=f'{settings.SESSION_COOKIE_NAME}="{octal}"')

        assert answer.status_code == 403


class TestAnswers:
    @pytest.mark.parametrize(
        "path", ["tasks/", "me/tasks/", "schema/", "docs/", "nothing/", "tasks/?state=x", "events/"]
    )
    def test_are_kept_by_no_cache(self, asked_by, ada, path):
        for asker in (asked_by(ada), asked_by()):
            assert "no-store" in asker.get(path).headers["Cache-Control"]
