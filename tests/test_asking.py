"""Which tests are asked on which database: each place that the rule names is there, and no test is asked on neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.asking import ON_BOTH, ON_POSTGRESQL, ON_SQLITE, OWN, is_asked, sample

TESTS = Path(__file__).parent
FILES = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")]


class TestIsAsked:
    @pytest.mark.parametrize("place", [*OWN, *ON_SQLITE, *ON_BOTH, *ON_POSTGRESQL])
    def test_is_about_what_there_is(self, place):
        assert (TESTS / place).exists()

    @pytest.mark.parametrize("vendor", ["sqlite", "postgresql"])
    def test_leaves_out_no_test_that_is_about_one_database_only(self, vendor):
        mark = f"only_{vendor}"
        about = [path for path in FILES if path != "test_asking.py" and f"mark.{mark}" in (TESTS / path).read_text()]

        assert about
        assert [path for path in about if not is_asked(path, vendor, whole=False)] == []

    def test_leaves_no_file_out_on_both(self):
        asked = {path for path in FILES for vendor in ("sqlite", "postgresql") if is_asked(path, vendor, whole=False)}

        assert asked == set(FILES)

    def test_is_true_of_everything_that_uses_the_database_of_the_tests_if_the_whole_is_wanted(self):
        left_out = {path for path in FILES if not is_asked(path, "postgresql", whole=True)}

        assert all(is_asked(path, "sqlite", whole=True) for path in FILES)
        assert {path for path in left_out if not path.startswith("benchmarks/")} == set(OWN) - {"benchmarks"}

    def test_is_true_on_both_of_what_is_named_nowhere(self):
        assert is_asked("store/test_new.py", "sqlite", whole=False)
        assert is_asked("store/test_new.py", "postgresql", whole=False)

    def test_is_not_true_of_words_on_postgresql_nor_of_celery_on_sqlite(self):
        assert not is_asked("admin/test_texts.py", "postgresql", whole=False)
        assert not is_asked("tasks/test_sending.py", "sqlite", whole=False)


class TestSample:
    def test_is_the_first_and_each_so_manieth_after_it(self):
        assert sample([1, 2, 3, 4, 5], 2, whole=False) == [1, 3, 5]

    def test_is_everything_if_the_whole_is_wanted(self):
        assert sample([1, 2, 3, 4, 5], 2, whole=True) == [1, 2, 3, 4, 5]
