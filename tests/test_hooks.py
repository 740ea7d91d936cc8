"""Features: found by their names in a list, refused by name where something is wrong with them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path
from pkgutil import walk_packages

import pytest
from django.apps import apps as all_apps
from django.core.exceptions import ImproperlyConfigured

from timeline import Timeline, after, each_of, hooks, task
from timeline import features as package
from timeline.definition.options import TaskOptions
from timeline.exceptions import DefinitionError
from timeline.features import FEATURES
from timeline.hooks import Hooks, Rules, around
from timeline.otel.apps import OpenTelemetryConfig
from timeline.otel.hooks import HOOKS as OTEL

ROOT = Path(__file__).resolve().parent.parent

SHOP = """
class Shop(Timeline):
    entity = "shop.Order"

    @task(after(days=1))
    def list_them(self, order): ...

    @task(each_of(list_them), limit=2)
    def settle(self, order): ...
"""

get_app_config = all_apps.get_app_config


@pytest.fixture
def features(monkeypatch):
    """Let other features be in the list, and no app take part."""

    def set_to(*names, apps=()):
        monkeypatch.setattr(hooks, "FEATURES", names)
        monkeypatch.setattr(hooks.apps, "get_app_configs", lambda: [get_app_config(name) for name in apps])
        hooks.rules.cache_clear()
        hooks.hooks.cache_clear()

    yield set_to
    hooks.rules.cache_clear()
    hooks.hooks.cache_clear()


@pytest.fixture
def module(monkeypatch, tmp_path):
    """Make a feature of a test: a folder with one module, ``hooks``."""

    def make(name, text, rules=None):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        if rules is not None:
            (folder / "rules.py").write_text(rules)
        (folder / "hooks.py").write_text(text)
        monkeypatch.setattr("timeline.features.__path__", [*sys.modules["timeline.features"].__path__, str(tmp_path)])

    yield make
    for name in [name for name in sys.modules if name.startswith("timeline.features.tides")]:
        del sys.modules[name]


class TestFeatures:
    def test_have_a_floor_for_each_of_their_files(self):
        [floors, *_others] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        named = {room for floor in floors["layers"] for room in re.findall(r"features[.\w]+", floor)}
        found = [one for one in walk_packages(package.__path__, "timeline.features.") if not one.ispkg]

        assert named == {one.name.removeprefix("timeline.") for one in found}

    def test_have_options_that_type_checkers_know(self):
        assert dict(hooks.rules().options).keys() <= TaskOptions.__optional_keys__


class TestHooks:
    def test_have_what_all_features_declare_in_the_order_of_the_list(self, features):
        features("waits", "steps")
        first = [name for name, _make in hooks.hooks().parts]
        features("steps", "waits")

        assert first == ["waiter", "teller"]
        assert [name for name, _make in hooks.hooks().parts] == first[::-1]

    def test_have_those_of_apps_after_them(self, features):
        features("steps", apps=["timeline", "timeline_otel", "auth"])

        assert [name for name, _make in hooks.hooks().parts] == ["teller"]
        assert hooks.hooks().emits == OTEL.emits
        assert hooks.hooks().prechecks == OTEL.prechecks

    def test_find_what_faces_ask_in_the_order_of_the_list(self, features):
        features("machines", "waits", "limits")

        checks = [check.__name__ for some in hooks.of_features("checks", "CHECKS") for check in some]

        assert checks == ["check_edges", "check_limits"]

    def test_are_empty_without_features(self, features):
        features()

        assert hooks.hooks() == Hooks()
        assert hooks.rules() == Rules()

    def test_name_a_feature_that_is_not_there(self, features):
        features("limits", "tides")

        with pytest.raises(ImproperlyConfigured, match="'tides' of timeline is not there: make the folder"):
            hooks.hooks()

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("raise RuntimeError('no moon')", r"'tides' of timeline cannot be loaded: RuntimeError\('no moon'\)"),
            ("HOOKS = 1", "'tides' of timeline has no HOOKS of type Hooks"),
            ("", "'tides' of timeline has no HOOKS of type Hooks"),
            ("from timeline.hooks import Hooks\nHOOKS = Hooks(tide=())", "cannot be loaded: TypeError"),
        ],
    )
    def test_name_a_feature_with_something_wrong(self, features, module, text, said):
        module("tides", text)
        features("tides")

        with pytest.raises(ImproperlyConfigured, match=said):
            hooks.hooks()

    @pytest.mark.parametrize(
        ("hook", "said"),
        [
            (
                "some_columns=(SomeColumns(('tide',), dict),)",
                "'tides' of timeline names 'tide', no column of ScheduledTask: see to its HOOKS",
            ),
            ("blanks=((Event, {'tide': ''}),)", "'tides' of timeline names 'tide', no column of Event"),
            (
                "some_columns=(SomeColumns(('limit_key',), dict),)",
                "'tides' of timeline has 'limit_key' among its columns of ScheduledTask, as 'limits' has",
            ),
            ("parts=(('teller', dict),)", "'tides' of timeline has 'teller' among its parts, as 'steps' has"),
            (
                "functions=(('is_awaited', None),)",
                "'tides' of timeline has 'is_awaited' among its functions, as 'waits'",
            ),
        ],
    )
    def test_name_a_feature_whose_columns_or_names_are_not_its_own(self, features, module, hook, said):
        module(
            "tides",
            f"from timeline.hooks import Hooks, SomeColumns\nfrom timeline.models import Event\nHOOKS = Hooks({hook})",
        )
        features("limits", "steps", "waits", "tides")

        with pytest.raises(ImproperlyConfigured, match=said):
            hooks.check_features()

    @pytest.mark.parametrize("kind", ["options", "verbs"])
    def test_name_a_feature_that_declares_what_another_does(self, features, module, kind):
        name = {"options": "limit", "verbs": "sleep"}[kind]
        module("tides", "", rules=f"from timeline.hooks import Rules\nRULES = Rules({kind}=(({name!r}, print),))")
        features("limits", "sleep", "tides")

        with pytest.raises(ImproperlyConfigured, match=f"'tides' of timeline has {name!r} among its {kind}"):
            hooks.check_features()

    def test_name_an_app_whose_hooks_cannot_be_loaded(self, features, monkeypatch):
        features(apps=["timeline_otel"])
        monkeypatch.setattr(OpenTelemetryConfig, "hooks", "timeline.otel.tides.HOOKS")

        with pytest.raises(ImproperlyConfigured, match=r"'timeline.otel' of timeline cannot be loaded: ModuleNotFound"):
            hooks.check_features()

    def test_are_loaded_as_the_app_is_set_up(self):
        script = (
            "import django\nfrom django.conf import settings\nfrom timeline import hooks\n"
            "settings.configure(INSTALLED_APPS=['django.contrib.contenttypes', 'django.contrib.auth', 'timeline'])\n"
            "hooks.FEATURES += ('tides',)\ndjango.setup()\n"
        )

        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

        assert ended.returncode == 1
        assert "ImproperlyConfigured: The feature 'tides' of timeline is not there" in ended.stderr


class TestAround:
    def test_stands_around_something_in_turn_and_is_told_of_its_error(self):
        told = []

        def one(name):
            @contextmanager
            def stand(given):
                told.append((name, given))
                try:
                    yield
                except ValueError:
                    told.append((name, "error"))
                    raise

            return stand

        with pytest.raises(ValueError, match="no"), around((one("first"), one("second")), "what"):
            raise ValueError("no")

        assert told == [("first", "what"), ("second", "what"), ("second", "error"), ("first", "error")]

    def test_is_always_the_same_where_nothing_stands(self):
        assert around((), "what") is around((), "else")


class TestAbsentFeatures:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"limit": 1}, "has limit=, an option of the feature 'limits', which is not in FEATURES"),
            (
                {"destructive": True, "park_above": 3},
                "has destructive=, an option of the feature 'holds', which is not in FEATURES",
            ),
            (
                {"on_failure": "tell"},
                "has on_failure=, an option of the feature 'on_failure', which is not in FEATURES",
            ),
        ],
    )
    def test_refuse_their_options(self, features, options, said):
        features(*(name for name in FEATURES if name not in ("limits", "holds", "on_failure")))

        with pytest.raises(DefinitionError, match=said):

            class Wanting(Timeline):
                @task(**options)
                def act(self):
                    """Do nothing."""

    def test_refuse_what_is_fanned_out(self, features):
        features(*(name for name in FEATURES if name != "fan_out"))

        with pytest.raises(DefinitionError, match="has each_of\\(…\\), and the feature 'fan_out' is not in FEATURES"):

            class Wanting(Timeline):
                @task(after(days=1))
                def list_them(self):
                    """Do nothing."""

                @task(each_of(list_them))
                def settle(self):
                    """Do nothing."""

    @pytest.mark.parametrize("verb", ["fan_out", "sleep"])
    def test_have_no_verbs(self, features, verb):
        features()

        with pytest.raises(ImproperlyConfigured, match=rf"self.{verb}\(…\) belongs to a feature"):
            hooks.verb(verb)


def test_a_class_is_declared_without_settings():
    """As scripts do, and tools that read a project: what features ask of it needs neither settings nor models."""
    script = "from timeline import Timeline, after, each_of, task\n" + SHOP
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}

    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
