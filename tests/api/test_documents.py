"""``schema/``, ``docs/``, and whatever is not there."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command

from tests.api.conftest import ROOT
from tests.api.test_tasks import problem
from tests.openapi import COMMITTED, committed

COMMAND = ["spectacular", "--validate", "--fail-on-warn", "--custom-settings", "timeline.api.schema.SETTINGS"]


class TestSchema:
    def test_is_the_one_in_the_docs(self, tmp_path):
        call_command(*COMMAND, "--file", str(tmp_path / "schema.yaml"))

        assert (tmp_path / "schema.yaml").read_text() == COMMITTED.read_text()

    def test_is_answered_as_it_is_written(self, asked_by, ada):
        assert asked_by(ada).get("schema/").json() == committed()

    def test_is_of_the_api_alone(self, asked_by, ada):
        assert all(path.startswith(f"{ROOT}/") for path in asked_by(ada).get("schema/").json()["paths"])

    def test_needs_somebody_logged_in(self, asked_by):
        problem(asked_by().get("schema/"), 403)
        assert asked_by().get("docs/").status_code == 403


class TestDocs:
    def test_load_nothing_from_elsewhere(self, asked_by, ada):
        page = asked_by(ada).get("docs/").content.decode()

        loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
        assert loaded
        assert "://" not in page.replace("http://www.w3.org", "")
        for address in loaded:
            if address.startswith(ROOT):
                page += asked_by(ada).get(address.removeprefix(f"{ROOT}/")).content.decode()
                continue
            assert finders.find(address.removeprefix(f"/{settings.STATIC_URL.strip('/')}/"))
        assert f"{ROOT}/schema/" in page

    def test_have_no_script_within_the_page_and_say_so(self, asked_by, ada):
        answer = asked_by(ada).get("docs/")

        assert re.findall(r"<script(?![^>]*\bsrc=)", answer.content.decode()) == []
        assert "script-src" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'self';")


class TestNothingHere:
    @pytest.mark.parametrize("path", ["nothing/", "tasks/1/", "users/1/", "entities/a/tasks/", "tasks/%0A/"])
    def test_is_a_problem_like_others(self, asked_by, ada, path):
        problem(asked_by(ada).get(path), 404)
        problem(asked_by(ada).post(path), 404)
        problem(asked_by().get(path), 403)
