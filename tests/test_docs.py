"""README and docs are true: their examples run, their commands exist, their tables are the code's."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from datetime import timedelta
from importlib.util import find_spec
from inspect import signature
from pathlib import Path

import pytest
from celery.bin.celery import celery
from click import Context
from django.conf import settings
from django.core.management import call_command, get_commands
from django.test import TestCase

from project.accounts.models import User
from tests.testapp.models import Customer, Order, Ticket, Trip
from timeline import Retry, Timeline, task
from timeline.conf import Settings
from timeline.definition.handlers import Options
from timeline.lifecycle import TRANSITIONS, ReasonCode, State, Trigger
from timeline.metrics.collecting import TimelineCollector
from timeline.operations.identifying import sign_of_poller
from timeline.registry import registry
from timeline.shortcuts import emit
from timeline.testing import only_timelines
from timeline.timelines import Alerts

ROOT = Path(settings.BASE_DIR)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# These do not end by themselves, or need a package that may not be there; other tests run them.
LEFT_COMMANDS = {
    "timeline_poll",
    "timeline_worker",
    *(() if find_spec("django_celery_beat") else ("timeline_install_beat",)),
}


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    """Each command line of each page."""
    return [
        (page.name, line.removeprefix("$ "))
        for page in PAGES
        for block in blocks(page, "console")
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


class TestFiles:
    """Pages that lead through the code name files that are there."""

    def test_of_the_first_five_minutes_are_no_more_than_it_says(self):
        chapter = (ROOT / "README.md").read_text(encoding="utf-8").partition("## The code in five minutes")[2]
        named = dict.fromkeys(re.findall(r"`(timeline/[\w/]+\.py)`", chapter.partition("\n## ")[0]))

        assert len(named) == 10
        assert sum(len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in named) < 1500

    def test_of_the_inside_are_there(self):
        text = (ROOT / "docs" / "inside.md").read_text(encoding="utf-8")
        named = re.findall(r"`([\w/]+(?:\.py|/))`", text)

        assert len(named) > 30
        assert [
            name for name in named if not any((ROOT / folder / name).exists() for folder in ("timeline", "."))
        ] == []

    def test_has_a_line_for_each_room(self):
        text = (ROOT / "docs" / "inside.md").read_text(encoding="utf-8").partition("## Rooms")[2].partition("\n## ")[0]
        rooms = {path.name for path in (ROOT / "timeline").iterdir() if (path / "__init__.py").exists()}

        assert rooms - {"migrations"} <= set(re.findall(r"`(\w+)/`", text))


class TestExamples:
    @pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
    def test_run_as_they_stand_one_after_the_other(self, page, clock, capsys, request):
        now = clock.now
        names = {
            "clock": clock,
            "User": User,
            "Order": Order,
            "Customer": Customer,
            "Ticket": Ticket,
            "Trip": Trip,
            "now": now,
            "timedelta": timedelta,
            "in_thirty_days": now + timedelta(days=30),
            "in_sixty_days": now + timedelta(days=60),
        }

        with only_timelines(Alerts):
            for block in blocks(page, "python"):
                exec(compile(block, str(page), "exec"), names)  # noqa: S102
                for value in list(names.values()):
                    if isinstance(value, type) and issubclass(value, Timeline) and "definition" in vars(value):
                        registry.register(value)
            ran = self.run_tests_among(names, clock, request)

        assert names["now"] == now
        assert ran == (page.name == "testing.md")

    def run_tests_among(self, names, clock, request):
        """Run the tests that a page shows."""
        ran = False
        for name, value in list(names.items()):
            if name.startswith("test_"):
                value(clock, Order.objects.create())
                ran = True
            elif isinstance(value, type) and issubclass(value, TestCase) and value is not TestCase:
                for test in [attribute for attribute in vars(value) if attribute.startswith("test_")]:
                    case = value(test)
                    case.setUp()
                    getattr(case, test)()
                    case.doCleanups()
        return ran


class TestCommands:
    @pytest.mark.parametrize(("page", "line"), commands())
    def test_work(self, page, line, clock, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        ends = clock.now + timedelta(days=30)
        user = User.objects.create(pk=1, email="a@example.com", signed_up_at=clock.now, trial_ends_at=ends)
        emit("user.created", user)
        sign_of_poller(using="default")
        words = shlex.split(line)

        if words[0] == "make":
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE)
        elif words[:3] == ["celery", "-A", "shop"]:
            command = celery.commands[words[3]]
            command.make_parser(Context(command)).parse_args(words[4:])
        elif words[0] in {"pip", "django-admin"} or words[2] == "startapp":
            assert page == "README.md"  # tests/new_project.py runs these.
        else:
            assert words[:2] == ["python", "manage.py"]
            assert words[2] in get_commands()
            if words[2] not in LEFT_COMMANDS:
                call_command(*words[2:], verbosity=0)


class TestTables:
    def test_lifecycle_is_the_codes(self):
        text = (ROOT / "docs" / "lifecycle.md").read_text(encoding="utf-8")
        shown = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \| (\w+) \|$", text, re.MULTILINE)

        expected = [
            (
                trigger.value,
                ", ".join(sorted(source.value for source, moved_by in TRANSITIONS if moved_by == trigger)),
                next(target.value for (_source, moved_by), target in TRANSITIONS.items() if moved_by == trigger),
            )
            for trigger in Trigger
        ]
        assert shown == expected

    def test_states_and_reasons_are_all_there(self):
        text = (ROOT / "docs" / "lifecycle.md").read_text(encoding="utf-8")

        assert set(re.findall(r"^\| (\w+) \| [a-z]", text, re.MULTILINE)) >= {state.value for state in State}
        assert set(re.findall(r"^\| `(\w+)` \| ", text, re.MULTILINE)) >= {code.value for code in ReasonCode}

    def test_checks_are_all_there(self):
        text = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
        code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "timeline" / "checks").glob("*.py"))

        shown = re.findall(r"^\| `(timeline\.[EW]\d+)` \|", text, re.MULTILINE)
        assert shown == sorted(set(re.findall(r'id="(timeline\.[EW]\d+)"', code)))

    def test_options_of_a_task_are_all_there(self):
        text = (ROOT / "docs" / "declaring.md").read_text(encoding="utf-8")
        shown = re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", text[text.index("### Every option") :], re.MULTILINE)

        assert [name for name, _default in shown] == list(signature(task).parameters)
        known = {"Retry": Retry, "timedelta": timedelta}
        assert {name: eval(default, known) for name, default in shown} == vars(Options())  # noqa: S307

    def test_metrics_are_all_there(self):
        text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
        shown = re.findall(r"^\| `(timeline_\w+)` \| (\w+) \| ([^|]*) ?\| (.+) \|$", text, re.MULTILINE)

        told = [
            (
                f"{each.name}_total" if each.type == "counter" else each.name,
                each.type,
                [label for label in each._labelnames if label != "database"],
                each.documentation,
            )
            for each in TimelineCollector().describe()
        ]
        assert [(name, kind, re.findall(r"`(\w+)`", labels), said) for name, kind, labels, said in shown] == told

    def test_rules_of_alerts_ask_for_metrics_that_there_are(self):
        page = ROOT / "docs" / "metrics.md"
        asked = set(re.findall(r"\b(timeline_\w+)", " ".join(blocks(page, "yaml")))) - {"timeline_token"}

        told = {each.name for each in TimelineCollector().describe()}
        assert len(asked) > 5
        assert {re.sub("_(total|bucket)$", "", name) for name in asked} <= told

    def test_settings_are_all_there(self):
        text = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")

        assert re.findall(r"^\| `([A-Z_]+)` \|", text, re.MULTILINE) == [field.name for field in fields(Settings)]


class TestLinks:
    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
    def test_lead_to_files_that_are_there(self, page):
        targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))

        assert [target for target in targets if not (page.parent / target).exists()] == []
