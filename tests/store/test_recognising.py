"""What somebody brings names nobody if it has text that no database can look for."""

from __future__ import annotations

import pytest
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections
from django.test import RequestFactory

from project.accounts.models import User
from timeline.store.callers import NamesNobody, looking_up, who_asks

UNSTORABLE = ["\x00", "ada\x00", "a\ud800", "\udfff"]


@pytest.fixture
def request_with():
    """Make a request that brings the key of a session."""

    def make(key):
        request = RequestFactory().get("/")
        request.session = SessionStore(key)
        AuthenticationMiddleware(lambda given: given)(request)
        return request

    return make


class TestLookingUp:
    @pytest.mark.parametrize("text", UNSTORABLE)
    def test_sends_no_statement_with_what_no_row_can_have(self, db, text):
        with pytest.raises(NamesNobody), looking_up():
            User.objects.filter(email=text).first()

        assert not any(connection.execute_wrappers for connection in connections.all())

    def test_sends_what_a_row_can_have(self, user):
        with looking_up():
            assert User.objects.filter(email=user.email).first() == user
            assert User.objects.filter(email="ä\u202e'\U0010ffff").first() is None


class TestWhoAsks:
    def test_is_nobody_by_a_key_that_no_row_can_have(self, db, request_with):
        assert who_asks(request_with("\x00" * 40)) is None

    def test_is_not_logged_in_by_a_key_that_no_row_has(self, db, request_with):
        assert who_asks(request_with("x" * 40)).is_anonymous

    def test_is_nobody_where_the_site_has_no_users(self, db):
        assert who_asks(RequestFactory().get("/")) is None

    def test_lets_a_fault_of_the_hosts_be_one(self, db, request_with):
        request = request_with("x" * 40)
        request.session = None

        with pytest.raises(TypeError):
            who_asks(request)
