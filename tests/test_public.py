"""``docs/reference/public.md`` is true: what it names is there, and what modules call their own is named."""

from __future__ import annotations

import re
from dataclasses import fields
from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import get_commands
from django.db.models import Model
from django.dispatch import Signal

import timeline.exceptions
import timeline.signals
from tests.pages import PAGES, text_of
from timeline import models
from timeline.conf import Settings
from timeline.exceptions import TimelineDeprecationWarning, TimelineError, UnknownEventWarning

TEXT = text_of("reference/public")
WHOLE = [
    "timeline",
    "timeline.admin",
    "timeline.shortcuts",
    "timeline.signals",
    "timeline.testing",
]  # All that is in ``__all__``.


def part(title: str) -> str:
    """What stands under a heading."""
    return re.split(r"^## ", TEXT.partition(f"## {title}\n")[2], flags=re.MULTILINE)[0]


def named(title: str) -> set[str]:
    return set(re.findall(r"`([\w.]+)`", part(title)))


NAMES = {
    module: re.findall(r"`(\w+)`", names)
    for module, names in re.findall(r"^\| `([\w.]+)` \| (.*) \|$", part("Names to import"), re.MULTILINE)
}


class TestNames:
    @pytest.mark.parametrize(("module", "name"), [(module, name) for module in NAMES for name in NAMES[module]])
    def test_can_be_imported(self, module, name):
        assert hasattr(import_module(module), name)

    @pytest.mark.parametrize("module", NAMES)
    def test_are_listed_in_order_and_once(self, module):
        assert NAMES[module] == sorted(set(NAMES[module]))

    @pytest.mark.parametrize("module", WHOLE)
    def test_are_all_that_a_public_module_calls_its_own(self, module):
        assert set(NAMES[module]) == set(import_module(module).__all__)

    def test_are_all_errors(self):
        defined = vars(timeline.exceptions).items()
        errors = {name for name, value in defined if isinstance(value, type) and issubclass(value, TimelineError)}

        assert set(NAMES["timeline.exceptions"]) == errors | {
            TimelineDeprecationWarning.__name__,
            UnknownEventWarning.__name__,
        }

    def test_are_all_that_the_docs_import(self):
        shown = {
            (module, name.strip())
            for page in PAGES
            if page.stem != "inside"  # For those who change the package.
            for module, names in re.findall(
                r"^ *from (timeline[\w.]*) import (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE
            )
            for name in names.split(",")
        }

        assert {(module, name) for module, name in shown if name not in NAMES.get(module, [])} == set()


class TestSettings:
    def test_are_those_that_are_known(self):
        assert named("Settings") - {"TIMELINE"} == {field.name for field in fields(Settings)}


class TestTables:
    def test_are_those_of_the_models_named(self):
        public = [getattr(models, name) for name in NAMES["timeline.models"]]
        tables = {model._meta.db_table for model in public if isinstance(model, type) and issubclass(model, Model)}

        assert {name for name in named("Tables") if name.startswith("timeline_")} == tables


class TestSignals:
    def test_are_signals(self):
        found = named("Signals") - {"timeline.signals"}

        assert found == {
            name for name in NAMES["timeline.signals"] if isinstance(getattr(timeline.signals, name), Signal)
        }


class TestCommands:
    def test_are_all_that_there_are(self):
        ours = {name for name, app in get_commands().items() if app == "timeline"}

        assert named("Commands") == ours


class TestPermissions:
    def test_are_those_of_the_tasks_of_holds_and_of_events(self):
        models = [apps.get_model("timeline", name) for name in ("scheduledtask", "hold")]
        own = {f"timeline.{codename}" for model in models for codename, _name in model._meta.permissions}
        usual = {"timeline.view_scheduledtask", "timeline.view_hold", "timeline.add_event"}

        assert named("In the admin") - {"admin"} == own | usual


class TestDeprecations:
    def test_are_warned_of_as_of_any_library(self):
        assert issubclass(TimelineDeprecationWarning, DeprecationWarning)
