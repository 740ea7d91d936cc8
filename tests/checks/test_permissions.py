"""Checks of permissions that timelines name."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.checks import ids
from timeline import OWNER, Machine, Timeline, approval, task
from timeline.checks import check_permissions
from timeline.testing import only_timelines

TABLE = {"a": {"go": "b"}, "b": {}}


def asking(*permissions):
    body = {"entity": "testapp.Order", "initial": "a", "table": TABLE, "asks": {"go": permissions}}
    return type("Asking", (Machine,), body)


def approved(by):
    @task(approval("refund", by=by, within=timedelta(days=2)))
    def refund(self, order): ...

    return type("Refund", (Timeline,), {"entity": "testapp.Order", "refund": refund})


def check(*classes, **given):
    with only_timelines(*classes):
        return check_permissions(None, **given)


class TestCheckPermissions:
    @pytest.mark.parametrize(
        "name",
        ["portal.resolve_booking", "testapp.change_order", "testapp.view_orderproxy", "auth.delete_group"],
        ids=["Meta.permissions", "default", "proxy", "of another app"],
    )
    def test_is_silent_where_a_model_has_it(self, name):
        assert check(asking(name), approved(name)) == []

    @pytest.mark.parametrize(
        ("name", "said", "meant"),
        [
            ("portal.resolve_bookings", "no model of 'portal' has", "portal.resolve_booking"),
            ("testapp.chnge_order", "no model of 'testapp' has", "testapp.change_order"),
            ("portl.resolve_booking", "no app has the label 'portl'", "portal.resolve_booking"),
        ],
    )
    def test_asks_for_the_one_that_is_meant(self, name, said, meant):
        for error, where in zip(
            check(asking(name), approved(name)), ["Asking.asks['go']", "Refund.refund, approval(by=…)"], strict=True
        ):
            assert error.id == "timeline.E006"
            assert error.msg.startswith(f"{where} names {name!r}, and {said}")
            assert error.hint.startswith(f"Did you mean {meant!r}?")

    def test_refuses_an_app_that_is_not_installed(self):
        [error] = check(asking("shop.resolve"))

        assert (error.id, error.msg) == (
            "timeline.E006",
            "Asking.asks['go'] names 'shop.resolve', and no app has the label 'shop'.",
        )

    def test_warns_of_what_no_model_has_and_is_called_like_none(self):
        assert ids(check(asking("portal.fly"))) == ["timeline.W015"]

    def test_only_warns_where_a_backend_of_the_host_may_know_more(self, settings):
        settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend", "rules.permissions.Backend"]

        assert ids(check(asking("portal.resolve_bookings", "shop.resolve"))) == ["timeline.W015"] * 2

    def test_leaves_the_owner(self):
        asks = {"go": ("portal.resolve_booking", OWNER)}
        body = {"entity": "accounts.User", "initial": "a", "table": TABLE, "asks": asks}

        assert check(type("Asking", (Machine,), body)) == []

    def test_is_silent_of_the_site_itself(self):
        assert check_permissions(None) == []


class TestCheckPermissionsOfADatabase:
    @pytest.fixture(autouse=True)
    def _made(self, db, django_user_model):
        kind = ContentType.objects.get_for_model(django_user_model)
        Permission.objects.create(content_type=kind, codename="add_usr", name="made by a migration")

    def test_knows_what_was_made_there(self):
        assert check(asking("accounts.add_usr"), databases=["default"]) == []

    def test_is_not_asked_unless_it_is_given(self):
        with CaptureQueriesContext(connection) as queries:
            assert ids(check(asking("accounts.add_usr"))) == ["timeline.E006"]

        assert len(queries) == 0

    def test_is_not_asked_where_all_are_known(self):
        with CaptureQueriesContext(connection) as queries:
            check(asking("testapp.change_order"), databases=["default"])

        assert len(queries) == 0

    def test_does_not_fail_before_the_tables_are_there(self, bare_database):
        bare_database("wal")

        assert ids(check(asking("portal.fly"), databases=["bare"])) == ["timeline.W015"]
