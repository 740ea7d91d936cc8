"""What is counted of six paths through the package: each leads where it should, and its reading list is what was counted."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from inspect import unwrap

import pytest
from django.conf import settings

from benchmarks.paths.counting import Definition, count, definition_of
from benchmarks.paths.tracing import traced
from timeline.dialects import POSTGRESQL, _quoted, _read
from timeline.lifecycle import Reason, State, Trigger, target
from timeline.testing import StoryClock

ROW = re.compile(r"\| ([^|]+) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|")
# Files of features that the timeline of the paths does not use.
SETTLED = [
    *("features/holds/precheck.py", "features/machines/outcomes.py", "features/limits/claims.py"),
    *(
        "features/fan_out/fanned_rows.py",
        "operations/succession.py",
        "features/waits/wake.py",
        "features/limits/keys.py",
    ),
    *("store/alerts.py", "runs.py"),
]
EMITTED = [
    *("features/machines/moves.py", "features/machines/quick_moves.py", "features/machines/mirror.py"),
    *("features/waits/wake.py", "features/limits/keys.py"),
]
# The most files and lines that a path may enter. Lower them when it gets shorter.
MOST = {"emit": (24, 1_400), "run": (42, 2_250), "save": (29, 1_335)}
READING = re.compile(r" *(\d+)  (timeline/\S+\.py):(\d+)  (\S+)")


def paths(*arguments):
    """What the script prints, on SQLite."""
    command = [sys.executable, "-m", "benchmarks.paths", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestTraced:
    def test_sees_functions_in_order_of_the_first_entry(self):
        with traced() as trace:
            target(State.ACTIVE, Trigger.COMPLETE)
            Reason.operator("asked for")
            target(State.ACTIVE, Trigger.CANCEL)

        assert [code.co_qualname for code in trace.code] == ["target", "Reason.operator", "check_is_text"]

    def test_sees_what_was_remembered_already_and_which_statements_are_read(self):
        text = POSTGRESQL.sql("first_due")
        gc.freeze()  # As a worker does, which tests start in this process.

        with traced() as trace:
            assert POSTGRESQL.sql("first_due") == text

        assert unwrap(_read).__code__ in trace.code
        assert [path.name for path in trace.statements] == ["first_due.postgresql.sql"]
        figures = count(trace)
        comment = sum(
            line.startswith("--") for line in next(iter(trace.statements)).read_text(encoding="utf-8").splitlines()
        )
        assert (figures.statements, figures.statement_lines) == (1, len(text.splitlines()) + comment)

    def test_sees_no_tools_of_tests_but_what_they_enter(self, now):
        with traced() as trace:
            StoryClock(now)

        assert [code.co_qualname for code in trace.code] == ["check_time", "check_range"]


class TestCount:
    def test_counts_the_lines_of_what_was_entered_once(self):
        with traced() as trace:
            target(State.ACTIVE, Trigger.COMPLETE)
            target(State.ACTIVE, Trigger.CANCEL)

        figures = count(trace)

        assert (figures.files, figures.definitions) == (1, 1)
        assert figures.lines == definition_of(target.__code__).lines


class TestDefinitionOf:
    def test_begins_with_decorators_and_names_what_is_around(self):
        found = definition_of(Reason.operator.__func__.__code__)

        assert found.name == "Reason.operator"
        lines = found.file.read_text(encoding="utf-8").splitlines()
        assert lines[found.first - 1].strip() == "@classmethod"
        assert lines[found.last - 1].strip().startswith("return cls(")

    def test_is_the_function_around_what_has_no_name(self):
        [generator] = [part for part in _quoted.__code__.co_consts if hasattr(part, "co_code")]

        assert definition_of(generator).name == "_quoted"

    def test_is_none_for_what_a_module_does(self, tmp_path):
        file = tmp_path / "module.py"
        file.write_text("lone = lambda: 1\n\n\nasync def several():\n    def inner():\n        return 2\n")
        module = compile(file.read_text(), str(file), "exec")
        lone, several = (part for part in module.co_consts if hasattr(part, "co_code"))
        [inner] = [part for part in several.co_consts if hasattr(part, "co_code")]

        assert definition_of(module) is None
        assert definition_of(lone) is None
        assert definition_of(several) == Definition(file, "several", 4, 6)
        assert definition_of(inner) == Definition(file, "several.inner", 5, 6)


@pytest.fixture(scope="module")
def details():
    """What is listed of three paths, and the figures below each: of all at once, as the script makes a database first."""
    names, found, listed = ["emit", "run", "save"], {}, []
    for line in paths("--detail", *names).splitlines():
        if read := READING.match(line):
            listed.append(read.groups())
        elif said := re.search(r"(\S+) definitions in (\S+) files, (\S+) lines", line):
            found[names[len(found)]] = listed, [int(figure.replace(",", "")) for figure in said.groups()]
            listed = []
    return found


@pytest.mark.processes
class TestScript:
    def test_prints_the_figures_of_six_paths(self):
        rows = {title: [int(cell.replace(",", "")) for cell in cells] for title, *cells in ROW.findall(paths())}

        assert list(rows) == [
            "emit → rows",
            "due row → outcome",
            "saved anchor → rows moved",
            "admin cancel",
            "REST cancel",
            "poll: due row → message",
        ]
        for title, (files, definitions, lines, _statements, _of_them) in rows.items():
            assert 3 <= files <= definitions < lines, title

    def test_lists_what_to_read_of_each(self, details):
        assert list(details) == ["emit", "run", "save"]
        for listed, (definitions, files, lines) in details.values():
            assert (definitions, files) == (len(listed), len({file for _lines, file, _first, _name in listed}))
            assert lines <= sum(int(length) for length, *_ in listed)
        listed, _figures = details["emit"]
        assert listed[0][1].startswith("timeline/shortcuts/")
        assert listed[0][3] == "emit"

    @pytest.mark.parametrize("path", MOST)
    def test_finds_no_path_longer_than_it_was(self, path, details):
        """Who makes a path longer should see it, and say why."""
        _listed, (_definitions, files, lines) = details[path]

        most_files, most_lines = MOST[path]
        assert files <= most_files
        assert lines <= most_lines

    @pytest.mark.parametrize(
        ("path", "features"),
        [
            ("emit", EMITTED),
            ("run", SETTLED),
            ("save", SETTLED),
        ],
    )
    def test_enters_no_module_of_a_feature_that_its_timeline_does_not_use(self, path, features, details):
        """Whether there is anything to do is asked before: a reader, and a processor, have less on the way."""
        listed, _figures = details[path]
        entered = {file.removeprefix("timeline/") for _lines, file, _first, _name in listed}

        assert all((settings.BASE_DIR / "timeline" / feature).exists() for feature in features)
        assert sorted(entered & set(features)) == []
