"""What docs/how-to/deploy-files.md says to copy: page and files agree, and what the files start is there."""

from __future__ import annotations

import re
import shlex
from configparser import ConfigParser
from datetime import timedelta
from inspect import signature
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from celery.bin.celery import celery
from click import Context
from django.conf import settings
from django.core.management import get_commands, load_command_class

from tests.pages import DOCS, blocks
from timeline.conf import Settings, get_settings
from timeline.features.maintenance.prune import prune
from timeline.tasks import MAINTAINED_AT_ONCE
from timeline.tasks.broker import poll_queue, queue_of

PAGE = DOCS / "how-to" / "deploying.md"
SHOWN = DOCS / "how-to" / "deploy-files.md"
FILES = sorted((DOCS / "deploy").iterdir())
UNITS = [file for file in FILES if file.suffix == ".service"]
COMPOSE = DOCS / "deploy" / "compose.yaml"
# The queue each process of Celery's takes from, by what the files call it.
QUEUES = {"worker": "timeline.default", "poll": "timeline-poll"}


def unit(file: Path) -> dict[str, str]:
    """What a unit says of its service."""
    parsed = ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str
    parsed.read(file)
    return dict(parsed["Service"])


def started() -> list[tuple[str, str, str]]:
    """Each command line of each file: the file, what it is called there, the line."""
    procfile = (DOCS / "deploy" / "Procfile").read_text(encoding="utf-8")
    found = [("Procfile", *line.split(": ", 1)) for line in procfile.splitlines()]
    for file in UNITS:
        name = file.stem.removeprefix("shop-").removesuffix("@")
        found.append((file.name, name, unit(file)["ExecStart"].replace("/srv/shop/.venv/bin/", "").replace("%%", "%")))
    for name, service in yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"].items():
        lines = service.get("command", "").removeprefix('sh -c "').removesuffix('"').split(" && ")
        found += [(COMPOSE.name, name, line) for line in lines if line]
    return found


class TestPage:
    @pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
    def test_shows_the_file_as_it_is(self, file):
        shown = [block for language in ("procfile", "ini", "yaml") for block in blocks(SHOWN, language)]

        assert file.read_text(encoding="utf-8") in shown
        assert len(shown) == len(FILES)

    def test_shows_settings_that_are_there(self, monkeypatch):
        names = {"DATABASES": {"default": {}}}

        for block in blocks(PAGE, "py"):
            exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102
        monkeypatch.setattr(settings, "TIMELINE", names["TIMELINE"])

        assert get_settings() == Settings(RETENTION=timedelta(days=365))
        assert names["DATABASES"]["default"] == {"DISABLE_SERVER_SIDE_CURSORS": True}

    def test_tells_how_much_is_pruned_in_a_minute(self):
        limit = signature(prune).parameters["limit"].default

        assert f"{MAINTAINED_AT_ONCE * limit:,} runs a minute" in " ".join(PAGE.read_text(encoding="utf-8").split())


class TestCommands:
    @pytest.mark.parametrize(("file", "name", "line"), started())
    def test_are_there_with_their_options(self, file, name, line):
        words = shlex.split(line)

        if words[:3] == ["celery", "-A", "shop"]:
            command = celery.commands[words[3]]
            command.make_parser(Context(command)).parse_args(words[4:])
            assert ("-Q" in words) == (name in QUEUES)
        elif words[0] == "python":
            app = get_commands()[words[2]]
            load_command_class(app, words[2]).create_parser("manage.py", words[2]).parse_args(words[3:])
        else:
            assert (name, words[:2]) == ("web", ["gunicorn", "shop.wsgi"])

    @pytest.mark.parametrize("file", ["Procfile", "compose.yaml", "shop-"])
    def test_take_from_the_queues_that_are_filled(self, file):
        """Whatever is sent by default has a process that takes it."""
        lines = {name: line for where, name, line in started() if where.startswith(file)}

        taken = {name: re.search(r"-Q (\S+)", lines[name]).group(1) for name in QUEUES}

        assert taken == QUEUES
        assert set(QUEUES.values()) == {queue_of("default"), poll_queue()}


class TestUnits:
    @pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
    def test_are_started_again_and_stop_by_sigterm(self, file):
        service = unit(file)

        assert (service["Restart"], service["KillSignal"]) == ("always", "SIGTERM")
        assert "TimeoutStopSec" in service

    @pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
    def test_spare_the_processes_of_a_pool(self, file):
        """SIGTERM to a child of Celery's would drop the handler it is in."""
        service = unit(file)

        assert (service.get("KillMode") == "mixed") == (" worker " in service["ExecStart"])

    @pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
    def test_leave_no_percent_sign_to_systemd_that_is_celerys(self, file):
        line = unit(file)["ExecStart"]

        assert re.findall(r"(?<!%)%(?!%)(.)", line) == (["i"] if "@" in file.stem else [])


class TestCompose:
    def test_starts_what_reads_before_what_writes(self):
        """The order of a deploy: migrate, workers, pollers, web."""
        services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
        order = ["migrate", "worker", "poll", "web"]

        for before, after in pairwise(order):
            assert before in services[after]["depends_on"]
        assert all("migrate" in services[name]["depends_on"] for name in [*order[1:], "beat"])

    def test_gives_workers_time_to_stop(self):
        services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]

        assert {name for name, service in services.items() if "stop_grace_period" in service} == set(QUEUES)
