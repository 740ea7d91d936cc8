"""Which files name a feature."""

from __future__ import annotations

import pytest

from benchmarks.belongs import PACKAGE, couplings, importers, named, names, spread


class TestNames:
    def test_are_those_of_code_and_texts_that_are_names_but_not_of_words_in_a_docstring(self, tmp_path):
        path = tmp_path / "some.py"
        path.write_text(
            '"""About the limit_key."""\n\n# limit_key\nrows.filter(limit_key="", task__limits=ask("of_it"))\n'
        )

        assert set(names(path)) == {"rows", "filter", "limit_key", "task__limits", "ask", "of_it"}


class TestNamed:
    def test_leaves_out_what_is_the_feature_s_own(self):
        found = {str(path.relative_to(PACKAGE)) for path in named("fan_out")}

        assert "planning/planner.py" in found
        assert "features/fan_out/fanned_rows.py" not in found

    @pytest.mark.parametrize(
        ("feature", "most"),
        [
            *[("limits", 15), ("steps", 45), ("holds", 35), ("waits", 46), ("recurring", 15), ("machines", 40)],
            *[("fan_out", 14), ("bulk_actions", 8)],
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
            *[("limits", 4), ("steps", 11), ("holds", 9), ("waits", 12), ("recurring", 10), ("machines", 20)],
            *[("fan_out", 2), ("bulk_actions", 3), ("plans", 5), ("sweep", 1), ("maintenance", 8)],
        ],
    )
    def test_become_fewer_and_never_more(self, feature, most):
        """Whoever takes one away lowers the number here."""
        assert len(couplings()[feature]) <= most
