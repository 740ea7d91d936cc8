"""Addresses that ask what no page knows: refused where it is like something that the page knows, else ignored."""

from __future__ import annotations

import re
from inspect import getsource

import pytest
from django.urls import reverse

from tests.admin.conftest import ENTITY, LIST, text_of
from timeline.admin.pages import PARAMETERS, misspelt, parameters, routes
from timeline.admin.tasks import TaskAdmin

DEAD, HEALTH, FIND = (reverse(f"admin:timeline_scheduledtask_{name}") for name in ("dead", "health", "find"))

VIEWS = [*(getattr(TaskAdmin, view) for view in sorted(PARAMETERS)), *(page.view for page in routes())]


class TestMisspelt:
    @pytest.mark.parametrize(
        ("name", "view", "meant"),
        [
            ("timelin", "changelist_view", "timeline"),
            ("stat", "changelist_view", "state"),
            ("State", "changelist_view", "state"),
            ("gruop", "dead_view", "group"),
            ("lable", "entity_view", "label"),
        ],
    )
    def test_finds_what_is_meant(self, name, view, meant):
        assert misspelt(["utm_source", name], view) == (name, meant)

    @pytest.mark.parametrize(
        ("name", "view"),
        [
            ("state", "changelist_view"),
            ("_", "changelist_view"),
            ("v", "changelist_view"),
            ("utm_source", "changelist_view"),
            ("page", "changelist_view"),
            ("timeline", "entity_view"),  # What another page knows is nothing here, as ever.
            ("timelin", "entity_view"),
            ("stat", "limits_view"),
        ],
    )
    def test_leaves_all_else_to_others(self, name, view):
        assert misspelt([name], view) is None

    def test_knows_views_that_there_are(self):
        assert all(callable(getattr(TaskAdmin, view)) for view in PARAMETERS)

    @pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
    def test_knows_what_a_view_reads(self, view):
        read = set(re.findall(r'request\.GET(?:\.get\(|\[)"(\w+)"', getsource(view)))

        assert read <= parameters()[view.__name__]


class TestPages:
    @pytest.mark.parametrize(
        ("path", "query", "meant"),
        [(LIST, "timelin", "timeline"), (DEAD, "gruop", "group"), (HEALTH, "tsk", "task"), (FIND, "word", "words")],
    )
    def test_say_what_is_meant(self, operator, path, query, meant):
        response = operator.get(path, {query: "x"})

        assert response.status_code == 400
        assert f"This page is not asked for “{query}”. Did you mean “{meant}”?" in text_of(response)

    @pytest.mark.parametrize("path", [LIST, DEAD, HEALTH, FIND])
    def test_ignore_what_is_for_others(self, operator, path):
        assert operator.get(path, {"_": "1760000000", "utm_source": "mail"}).status_code == 200

    def test_say_nothing_to_who_may_not_see_them(self, client, person):
        client.force_login(person("nobody", is_staff=True))

        assert client.get(LIST, {"timelin": "x"}).status_code == 403

    def test_of_an_entity_still_say_that_there_is_none(self, operator):
        assert operator.get(ENTITY, {"label": "testapp.order", "id": "4711", "nonce": "1"}).status_code == 404
