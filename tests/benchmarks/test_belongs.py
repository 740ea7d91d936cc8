"""Which files name a feature."""

from __future__ import annotations

import pytest

from benchmarks.belongs import PACKAGE, ROOTS, couplings, importers, named, names, parted, spread


class TestNames:
    def test_are_those_of_code_and_texts_that_are_names_but_not_of_words_in_a_docstring(self, tmp_path):
        path = tmp_path / "some.py"
        path.write_text(
            '"""About the limit_key."""\n\n# limit_key\nrows.filter(limit_key="", task__limits=ask("of_it"))\n'
        )

        assert set(names(path)) == {"rows", "filter", "limit_key", "task__limits", "ask", "of_it"}

    def test_are_not_what_a_library_or_html_calls_so_but_ours_by_the_same_name(self, tmp_path):
        theirs, ours = tmp_path / "theirs.py", tmp_path / "ours.py"
        theirs.write_text(
            'asyncio.wait_for(sender.app.steps["worker"])\nDateInput(attrs={"type": "time", "step": 60})\n'
        )
        ours.write_text('self.wait_for(attempt.steps)\nread({"step": 60})\n')

        assert not {"wait_for", "steps", "step"} & set(names(theirs))
        assert {"wait_for", "steps", "step"} <= set(names(ours))


class TestNamed:
    def test_leaves_out_what_is_the_feature_s_own(self):
        found = {str(path.relative_to(PACKAGE)) for path in named("fan_out")}

        assert "planning/planner.py" in found
        assert "features/fan_out/fanned_rows.py" not in found

    def test_leaves_out_its_command_which_django_looks_for_elsewhere(self):
        commands = PACKAGE / "management" / "commands"

        assert {"timeline_hold.py", "timeline_doctor.py"} <= {path.name for path in commands.iterdir()}
        assert commands / "timeline_hold.py" not in named("holds")
        assert commands / "timeline_doctor.py" in named("holds")

    def test_does_not_take_for_a_hold_what_keeps_a_place(self):
        assert not [path for path in named("holds") if path.parent.name == "limits"]


class TestParted:
    def test_tells_roots_from_other_features_and_from_all_the_rest(self):
        several = ["models/__init__.py", "features/__init__.py", "features/waits/calls.py", "api/urls.py"]

        assert parted([PACKAGE / each for each in several]) == (2, 1, 1)

    def test_knows_roots_that_are_there(self):
        assert [each for each in ROOTS if not (PACKAGE / each).exists()] == []


class TestBounds:
    @pytest.mark.parametrize(
        ("feature", "most"),
        [
            *[("limits", 14), ("steps", 35), ("holds", 31), ("waits", 37), ("recurring", 15), ("machines", 40)],
            *[("fan_out", 14), ("bulk_actions", 8), ("rates", 8), ("debounce", 4), ("on_failure", 3)],
        ],
    )
    def test_become_fewer_and_never_more(self, feature, most):
        """Who takes one away lowers the number here. Who adds one moves it into the folder of the feature, or says why not."""
        assert len(named(feature)) <= most


class TestSpread:
    def test_counts_what_there_is(self):
        assert spread()["Python files"] > 100
        assert "timeline.registry" in importers()

    def test_finds_no_more_file_names_that_repeat(self):
        assert spread()["file names that repeat"] <= 35


class TestCouplings:
    @pytest.mark.parametrize(
        ("feature", "most"),
        [
            *[("limits", 4), ("steps", 11), ("holds", 9), ("waits", 11), ("recurring", 10), ("machines", 20)],
            *[("fan_out", 2), ("bulk_actions", 3), ("plans", 5), ("sweep", 1), ("maintenance", 8)],
        ],
    )
    def test_become_fewer_and_never_more(self, feature, most):
        """Whoever takes one away lowers the number here."""
        assert len(couplings()[feature]) <= most
