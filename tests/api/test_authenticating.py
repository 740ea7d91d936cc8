"""Who asks is found out: whatever an authenticator decodes of what was sent, text that no row can have is nobody's."""

from __future__ import annotations

from base64 import b64encode

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client, RequestFactory
from rest_framework.authentication import BaseAuthentication, BasicAuthentication, SessionAuthentication

from project.accounts.models import User
from tests.api.conftest import ROOT
from timeline.api.base import Private
from timeline.api.timelines import MyTasks
from timeline.api.urls import routes

UNSTORABLE = ["\x00", "ada\x00", "a\ud800"]
ADDRESSES = [str(route.pattern) for route in routes() if route.name != "nothing-here" and "<" not in str(route.pattern)]


class ByQuery(BaseAuthentication):
    """Of a host: finds an account by text that is decoded from what was sent."""

    def authenticate(self, request):
        name = bytes.fromhex(request.query_params["who"]).decode(errors="surrogatepass")
        found = User.objects.filter(email=name).first()
        return found and (found, None)


def basic(name, said="x"):
    return "Basic " + b64encode(f"{name}:{said}".encode(errors="surrogatepass")).decode()


@pytest.fixture(autouse=True)
def _by_name_or_session(monkeypatch):
    """As REST framework has it unless a site says otherwise."""
    both = [BasicAuthentication, SessionAuthentication]
    monkeypatch.setattr(Private, "authentication_classes", both, raising=False)


@pytest.fixture
def client(db):
    return Client(raise_request_exception=False)


class TestPerformAuthentication:
    @pytest.mark.parametrize("path", [*ADDRESSES, "nothing/"])
    @pytest.mark.parametrize("method", ["get", "post"])
    def test_logs_nobody_in_by_a_name_with_nul(self, client, path, method):
        answer = getattr(client, method)(f"{ROOT}/{path}", headers={"authorization": basic("\x00x")})

        assert answer.status_code in (401, 403)

    @pytest.mark.parametrize("name", UNSTORABLE)
    def test_answers_as_for_any_other_name_that_nobody_has(self, client, name):
        known = client.get(f"{ROOT}/tasks/", headers={"authorization": basic("nobody")})

        answer = client.get(f"{ROOT}/tasks/", headers={"authorization": basic(name)})

        assert answer.status_code == known.status_code

    @pytest.mark.parametrize("name", UNSTORABLE)
    def test_asks_no_database_for_what_an_authenticator_has_decoded(self, db, name):
        class Mine(MyTasks):
            authentication_classes = [ByQuery]

        who = name.encode(errors="surrogatepass").hex()
        answer = Mine.as_view()(RequestFactory().get("/", {"who": who}))

        assert answer.status_code in (401, 403)

    def test_leaves_databases_as_they_were(self, client, ada):
        client.get(f"{ROOT}/tasks/", headers={"authorization": basic("\x00")})

        assert not any(connection.execute_wrappers for connection in connections.all())
        assert User.objects.filter(email="ada@example.com").exists()

    def test_takes_passwords_with_anything_in_them(self, client, ada):
        """They are in no statement: what they are compared with is made of them."""
        ada.set_password("x\x00y")
        ada.save()

        answer = client.get(f"{ROOT}/me/tasks/", headers={"authorization": basic(ada.email, "x\x00y")})

        assert answer.status_code == 200

    @pytest.mark.parametrize("path", ADDRESSES)
    def test_looks_for_no_session_by_a_key_with_nul(self, client, path):
        """A cookie spells NUL as an escape. Nor does the page of an error look for it."""
        octal = "\\000" * 40

        answer = client.get(f"{ROOT}/{path}", HTTP_COOKIE=f'{settings.SESSION_COOKIE_NAME}="{octal}"')

        assert answer.status_code == 401


class TestRefusals:
    @pytest.mark.parametrize("accept", ["application/json", "text/html", "image/png", "x", "*/*;q=0", "\xff/\x00"])
    @pytest.mark.parametrize(
        "given", ["Basic", "Basic =", "Basic a b", "Basic /w==", basic("ada", "wrong"), "Bearer x"]
    )
    def test_are_shown_in_the_format_that_a_view_has(self, client, given, accept):
        """The page of an error wants to know who asks, too."""
        for path in ("docs/", "tasks/"):
            answer = client.get(f"{ROOT}/{path}", headers={"authorization": given, "accept": accept})

            assert answer.status_code == 401, (path, answer.content)
