"""Which tests are asked in which size, on which database: each place that is named is there, and no test is asked nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.asking import (
    KILLS,
    LONG,
    ON_BOTH,
    ON_POSTGRESQL,
    ON_SQLITE,
    ON_SQLITE_TOO,
    OWN,
    RULES,
    is_asked,
    is_entered,
    is_left_out,
    room_of,
    sample,
)

TESTS = Path(__file__).parent
FILES = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")]
VENDORS = ("sqlite", "postgresql")


def asked(size, vendor, **options):
    return {path for path in FILES if is_asked(path, vendor, size=size, **{"whole": False, **options})}


def named(places):
    """The files that these places are about."""
    return {path for path in FILES if room_of(path) in places or path.startswith(tuple(places))}


class TestPlaces:
    @pytest.mark.parametrize(
        "place", [*OWN, *RULES, *ON_BOTH, *ON_POSTGRESQL, *ON_SQLITE, *ON_SQLITE_TOO, *LONG, *KILLS]
    )
    def test_are_about_what_there_is(self, place):
        file, *names = place.split("[")[0].split("::")

        assert (TESTS / file).exists()
        for name in names:
            assert f" {name}" in (TESTS / file).read_text(encoding="utf-8")


class TestIsAsked:
    @pytest.mark.parametrize("vendor", VENDORS)
    def test_leaves_out_no_test_that_is_about_one_database_only(self, vendor):
        mark = f"only_{vendor}"
        about = {path for path in FILES if path != "test_asking.py" and f"mark.{mark}" in (TESTS / path).read_text()}

        assert about
        assert about <= asked("all", vendor)

    def test_leaves_no_file_out_on_both(self):
        assert asked("all", "sqlite") | asked("all", "postgresql") == set(FILES)

    def test_is_true_of_everything_that_uses_the_database_of_the_tests_if_the_whole_is_wanted(self):
        assert asked("all", "sqlite", whole=True) == set(FILES)
        own = {
            path
            for path in set(FILES) - asked("all", "postgresql", whole=True)
            if "/" not in path or path[:4] != "benc"
        }
        assert own <= named([*OWN, *ON_SQLITE])

    def test_is_true_on_both_of_what_is_named_nowhere(self):
        assert all(is_asked("store/test_new.py", vendor, size="all", whole=False) for vendor in VENDORS)
        assert is_asked("models/test_new.py", "postgresql", size="test", whole=False)

    def test_is_not_true_of_words_on_sqlite_nor_of_rules_on_postgresql(self):
        assert not is_asked("admin/test_actions.py", "sqlite", size="all", whole=False)
        assert not is_asked("planning/test_rows.py", "postgresql", size="all", whole=False)

    def test_is_true_of_rules_alone_in_the_quick_size(self):
        assert asked("quick", "sqlite") == named(RULES)
        assert asked("quick", "postgresql") == set()

    @pytest.mark.parametrize("vendor", VENDORS)
    def test_leaves_out_in_a_smaller_size_only_what_a_larger_one_asks(self, vendor):
        assert asked("quick", vendor) <= asked("test", vendor) <= asked("all", vendor)

    def test_leaves_out_what_needs_a_browser_or_takes_long_when_each_test_is_asked_once(self):
        once = asked("test", "sqlite") | asked("test", "postgresql")

        assert not once & named(["browser", "faults", "benchmarks"])
        assert {path for path in once if path.startswith("stories/")}

    @pytest.mark.parametrize("room", ["admin", "browser", "definition", "engine", "models", "postgresql", "store"])
    @pytest.mark.parametrize("size", ["quick", "test", "all"])
    def test_is_of_a_feature_s_file_what_it_is_of_a_file_of_the_room_it_is_named_after(self, room, size):
        for vendor in VENDORS:
            of_the_room = is_asked(f"{room}/test_new.py", vendor, size=size, whole=False)

            assert is_asked(f"features/new/test_{room}.py", vendor, size=size, whole=False) is of_the_room
            assert is_asked(f"features/new/test_{room}_of_it.py", vendor, size=size, whole=False) is of_the_room


class TestRoomOf:
    def test_is_none_of_what_lies_in_a_room_or_is_no_test(self):
        assert room_of("features/limits/test_engine_places.py") == "engine"
        assert (
            room_of("engine/test_places.py")
            == room_of("features/limits/engine.py")
            == room_of("features/test_new.py")
            == ""
        )


class TestIsEntered:
    def test_is_no_folder_that_needs_tools_unless_everything_is_asked(self):
        assert not is_entered("browser", size="test")
        assert is_entered("browser", size="all")

    @pytest.mark.parametrize("size", ["quick", "test"])
    def test_is_each_folder_with_a_file_that_is_asked(self, size):
        files = asked(size, "sqlite") | asked(size, "postgresql")

        assert {str(Path(file).parent) for file in files if not is_entered(str(Path(file).parent), size=size)} <= {"."}


class TestIsLeftOut:
    @pytest.mark.parametrize("mark", ["needs", "plans", "processes"])
    def test_is_what_needs_more_than_a_database(self, mark):
        assert is_left_out("worker/test_new.py::TestNew::test_it", [mark], size="test")
        assert not is_left_out("worker/test_new.py::TestNew::test_it", ["only_sqlite"], size="test")

    def test_is_what_takes_long(self):
        assert is_left_out("stories/test_from_cron_settlement.py::TestKilled::test_it", [], size="test")
        assert not is_left_out("stories/test_from_cron_settlement.py::TestOneADay::test_it", [], size="test")

    @pytest.mark.parametrize("kill", KILLS)
    def test_is_no_kill_of_those_that_are_asked(self, kill):
        assert not is_left_out(kill, ["processes"], size="test")

    def test_is_nothing_of_the_whole(self):
        assert not is_left_out(f"{LONG[0]}::test_it", ["needs", "plans", "processes"], size="all")


class TestSample:
    def test_is_the_first_and_each_so_manieth_after_it(self):
        assert sample([1, 2, 3, 4, 5], 2, whole=False) == [1, 3, 5]

    def test_is_everything_if_the_whole_is_wanted(self):
        assert sample([1, 2, 3, 4, 5], 2, whole=True) == [1, 2, 3, 4, 5]
