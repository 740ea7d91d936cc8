"""Checks of what is allowed, and probably meant otherwise."""

import sys
from importlib import import_module

import pytest
from django.apps import AppConfig, apps

from tests.checks import ids
from timeline import Machine, Timeline, after, created, task
from timeline.checks import check_modules, check_starts
from timeline.testing import only_timelines


@pytest.fixture
def app(tmp_path, monkeypatch):
    """An app with these modules: ``app(timeline="…")``."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lending").mkdir()
    (tmp_path / "lending" / "__init__.py").touch()

    def make(**modules):
        for name, text in modules.items():
            (tmp_path / "lending" / f"{name}.py").write_text(text, encoding="utf-8")
        return AppConfig("lending", import_module("lending"))

    yield make
    sys.modules.pop("lending", None)


class TestCheckModules:
    def test_finds_a_module_that_is_called_almost_as_it_has_to_be(self, app):
        config = app(timeline="from timeline import Timeline\n")

        [found] = check_modules([config])

        assert (found.id, found.hint) == ("timeline.W016", "Call it lending.timelines.")

    @pytest.mark.parametrize(
        "modules",
        [
            {"timeline": "rows = []\n"},
            {"timeline": "from timeline import Timeline\n", "timelines": ""},
            {"timelines": "from timeline import Timeline\n"},
            {},
        ],
        ids=["of something else", "beside the right one", "the right one", "none"],
    )
    def test_leaves_other_modules_in_peace(self, app, modules):
        assert check_modules([app(**modules)]) == []

    def test_is_silent_about_this_site(self):
        assert check_modules(apps.get_app_configs()) == []


def timeline(base=Timeline, **options):
    @task(after(days=1))
    def remind(self, order): ...

    return type("Lending", (base,), {"entity": "testapp.Order", "remind": remind, **options})


def check(cls):
    with only_timelines(cls):
        return check_starts(None)


class TestCheckStarts:
    @pytest.mark.parametrize("start", ["created", "created()", ("order.paid", "daily")])
    def test_finds_a_start_in_quotes(self, start):
        [found] = check(timeline(starts_on=start))

        assert found.id == "timeline.W017"
        assert "which is the name of an event" in found.msg
        assert "(…), without quotes?" in found.hint

    def test_finds_an_attribute_that_is_called_as_a_start_where_there_is_none(self):
        [found] = check(timeline(begins_with="order.paid"))

        assert ids([found]) == ["timeline.W017"]
        assert "its begins_with = 'order.paid' is no option" in found.msg

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"starts_on": created()},
            {"starts_on": "order.created"},
            {"starts_on": "order.paid", "note": "something"},
            {"NOTE": "something"},
            {"_note": "something"},
            {"owner": ""},
            {"template": "mails/reminder.html"},
            {"subjects": ("one", "two")},
        ],
        ids=str,
    )
    def test_leaves_what_is_meant_so_in_peace(self, options):
        assert check(timeline(**options)) == []

    def test_leaves_machines_in_peace(self):
        table = {"a": {"go": "b"}, "b": {}}
        body = {"entity": "testapp.Order", "initial": "a", "table": table, "note": "something"}

        assert check(type("Moving", (Machine,), body)) == []

    def test_is_silent_about_this_site(self):
        assert check_starts(None) == []
