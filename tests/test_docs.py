"""README and docs are true: their examples run, their commands exist, their tables are the code's."""

from __future__ import annotations

import re
import shlex
import tomllib
from argparse import ArgumentParser
from base64 import b64encode
from contextlib import nullcontext
from datetime import timedelta
from importlib.util import find_spec, module_from_spec, spec_from_file_location

import pytest
from celery.bin.celery import celery
from click import Context
from django.core.management import call_command, get_commands
from django.test import Client, TestCase
from rest_framework.authentication import BasicAuthentication, SessionAuthentication

from project.accounts.models import User
from tests.django_tasks.framework import task as django_task
from tests.otel.spans import spans  # noqa: F401 (a fixture)
from tests.pages import DOCS, PAGES, README, ROOT, anchors_of, blocks, examples, name_of, text_of
from tests.testapp.models import Customer, Order, Plan, Ticket, Trip
from timeline import Timeline, after, task
from timeline.api.base import Private
from timeline.lifecycle import TRANSITIONS, ReasonCode, State, Trigger
from timeline.metrics.collecting import TimelineCollector
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.shortcuts import emit, start
from timeline.store.site import sign_of_poller
from timeline.testing import only_timelines
from timeline.timelines import Alerts

# A project is made by these, in test_tutorial.py.
FOLLOWED = [README, *(DOCS / "tutorial").glob("*.md")]
FAILING = {
    "alerts.md",
    "from-cron.md",
    "machine-timers.md",
    "questions.md",
    "steps.md",
    "steps-in-doubt.md",
}  # Handlers raise in their examples.
# What a page imports before its examples, from where it is in this version of Django.
GIVEN = {"django-tasks.md": {"task": django_task}}
# These do not end by themselves, or need a package that may not be there; other tests run them.
LEFT_COMMANDS = {
    "timeline_poll",
    "timeline_worker",
    *(() if find_spec("django_celery_beat") else ("timeline_install_beat",)),
}


def commands() -> list[tuple[str, str]]:
    """Each command line of each page; of pages that are followed, those of ``make`` alone."""
    return [
        (name_of(page), line.removeprefix("$ "))
        for page in PAGES
        for block in blocks(page, "console")
        for line in block.splitlines()
        if line.startswith("$ make" if page in FOLLOWED else "$ ") and not line.startswith("$ curl ")
    ]


class TestFiles:
    """Pages that lead through the code name files that are there."""

    def test_of_the_first_five_minutes_are_no_more_than_it_says(self):
        chapter = text_of("explanation/inside").partition("## The code in five minutes")[2]
        named = dict.fromkeys(re.findall(r"`(timeline/[\w/]+\.py)`", chapter.partition("\n## ")[0]))

        assert len(named) == 10
        assert sum(len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in named) < 2700

    def test_of_the_inside_are_there(self):
        text = text_of("explanation/inside")
        named = re.findall(r"`([\w/]+(?:\.py|/))`", text)

        assert len(named) > 30
        homes = [ROOT, ROOT / "timeline", ROOT / "timeline" / "features", *(ROOT / "timeline" / "features").iterdir()]
        assert [
            name for name in named if not any((home / name).exists() for home in homes) and "cooldown" not in name
        ] == []

    def test_has_a_line_for_each_room(self):
        text = text_of("explanation/inside").partition("## Rooms")[2].partition("\n## ")[0]
        rooms = {path.name for path in (ROOT / "timeline").iterdir() if (path / "__init__.py").exists()}

        assert rooms - {"migrations"} <= set(re.findall(r"`(\w+)/`", text))


class TestExamples:
    @pytest.mark.parametrize("page", [page for page in PAGES if page not in FOLLOWED and examples(page)], ids=name_of)
    def test_run_as_they_stand_one_after_the_other(self, page, clock, capsys, request):
        now = clock.now
        names = {
            "clock": clock,
            "User": User,
            "Order": Order,
            "Customer": Customer,
            "Ticket": Ticket,
            "Trip": Trip,
            "Plan": Plan,
            "now": now,
            "timedelta": timedelta,
            "in_thirty_days": now + timedelta(days=30),
            "in_sixty_days": now + timedelta(days=60),
            **GIVEN.get(page.name, {}),
        }

        traced = request.getfixturevalue("spans") if page.name == "opentelemetry.md" else None
        names |= {"exporter": traced.exporter, "tracer": traced.tracer} if traced is not None else {}

        with only_timelines(Alerts), clock.failing() if page.name in FAILING else nullcontext():
            for block in examples(page):
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
        elif words[0] == "pip":
            assert page == "docs/how-to/celery.md"  # tests/new_project.py runs it.
        else:
            assert words[:2] == ["python", "manage.py"]
            assert words[2] in get_commands()
            if words[2] not in LEFT_COMMANDS:
                call_command(*words[2:], verbosity=0)


class Waiting(Timeline):
    """Has one row, due later."""

    entity = "accounts.User"

    @task(after(days=3))
    def greet(self, user) -> None: ...


class TestCurl:
    """What pages send from a terminal is sent here, without a terminal, one after the other."""

    def test_is_answered(self, clock, monkeypatch):
        both = [BasicAuthentication, SessionAuthentication]  # As REST framework has it unless a site says otherwise.
        monkeypatch.setattr(Private, "authentication_classes", both, raising=False)
        rights = {"is_staff": True, "is_superuser": True}
        ada = User.objects.create(email="ada", signed_up_at=clock.now, trial_ends_at=clock.now, **rights)
        ada.set_password("secret")
        ada.save()
        with only_timelines(Waiting):
            start(Waiting, ada)
        task_id = ScheduledTask.objects.for_entity(ada).get().pk

        answers = [send(line.replace("$TASK", str(task_id))) for line in curls()]

        assert [answer.status_code for answer in answers] == [200] * 4
        assert [answer.json()["state"] for answer in answers[2:]] == ["scheduled", "cancelled"]


def curls() -> list[str]:
    """Each request that a page sends from a terminal."""
    shown = [line for page in PAGES for block in blocks(page, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in shown if line.startswith("$ curl ")]


def send(line: str):
    """Send what curl would, with the password that it would ask for."""
    parser = ArgumentParser()
    parser.add_argument("-u", dest="user")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="body")
    parser.add_argument("address")
    given = parser.parse_args(shlex.split(line)[1:])
    headers = dict(header.split(": ") for header in given.headers)
    kind = headers.pop("Content-Type", "application/x-www-form-urlencoded")
    login = "Basic " + b64encode(f"{given.user}:secret".encode()).decode()
    path = given.address.removeprefix("http://127.0.0.1:8000")
    sent = {"data": given.body, "content_type": kind} if given.body else {}
    return (Client().post if given.body else Client().get)(path, headers={"authorization": login, **headers}, **sent)


class TestTables:
    def test_lifecycle_is_the_codes(self):
        text = text_of("reference/lifecycle")
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
        text = text_of("reference/lifecycle")

        assert set(re.findall(r"^\| (\w+) \| [a-z]", text, re.MULTILINE)) >= {state.value for state in State}
        assert set(re.findall(r"^\| `(\w+)` \| ", text, re.MULTILINE)) >= {code.value for code in ReasonCode}

    def test_extras_are_all_there(self):
        chapter = README.read_text(encoding="utf-8").partition("### Extras\n")[2].partition("\n## ")[0]
        known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

        cells = re.findall(r"^\| (`.+?) \|", chapter, re.MULTILINE)
        assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == sorted(known)

    def test_checks_are_all_there(self):
        text = text_of("reference/checks")
        package = ROOT / "timeline"
        files = [*package.glob("checks/*.py"), *package.glob("features/*/checks.py")]
        code = "".join(file.read_text(encoding="utf-8") for file in files)

        shown = re.findall(r"^\| `(timeline\.[EW]\d+)` \|", text, re.MULTILINE)
        assert shown == sorted(set(re.findall(r'id="(timeline\.[EW]\d+)"', code)))

    def test_metrics_are_all_there(self):
        text = text_of("how-to/metrics")
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
        page = DOCS / "how-to" / "metrics.md"
        asked = set(re.findall(r"\b(timeline_\w+)", " ".join(blocks(page, "yaml")))) - {"timeline_token"}

        told = {each.name for each in TimelineCollector().describe()}
        assert len(asked) > 5
        assert {re.sub("_(total|bucket)$", "", name) for name in asked} <= told


class TestReference:
    @pytest.mark.skipif(not find_spec("django_celery_beat"), reason="a command needs it")
    def test_is_what_the_code_says(self, monkeypatch):
        """To write it anew: python docs/generate.py."""
        monkeypatch.syspath_prepend(DOCS)  # As Python does with the folder of a script.
        spec = spec_from_file_location("generate", DOCS / "generate.py")
        generate = module_from_spec(spec)
        spec.loader.exec_module(generate)

        stale = [name for name, text in generate.pages().items() if text != text_of(f"reference/{name[:-3]}")]
        assert stale == []


class TestIndex:
    @pytest.mark.parametrize("folder", ["tutorial", "how-to", "reference", "explanation"])
    def test_lists_each_page_of_its_folder_by_its_title(self, folder):
        listed = dict(re.findall(r"\[([^]]+)\]\(([\w-]+)\.md\)", text_of(f"{folder}/index")))

        pages = [page for page in (DOCS / folder).glob("*.md") if page.stem != "index"]
        assert listed == {page.read_text(encoding="utf-8").partition("\n")[0][2:]: page.stem for page in pages}


class TestLinks:
    @pytest.mark.parametrize("page", PAGES, ids=name_of)
    def test_lead_to_files_that_are_there(self, page):
        targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))

        assert [target for target in targets if not (page.parent / target).exists()] == []

    @pytest.mark.parametrize("page", PAGES, ids=name_of)
    def test_lead_to_headings_that_are_there(self, page):
        targets = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8"))

        named = [(page.parent / target if target else page, anchor) for target, anchor in targets]
        assert [(to.name, anchor) for to, anchor in named if to.suffix == ".md" and anchor not in anchors_of(to)] == []
