"""Files whose tests start processes, found by reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.starting import FIXTURES, Missed, check, may_start

TESTS = Path(__file__).parent


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a file of tests, two folders below the root: ``file("…")``."""
    monkeypatch.setattr("tests.starting._ROOT", tmp_path)
    folder = tmp_path / "outer" / "inner"
    folder.mkdir(parents=True)

    def write(text):
        path = folder / "test_it.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write


class TestMayStart:
    @pytest.mark.parametrize("fixture", sorted(FIXTURES))
    def test_is_so_of_a_file_that_names_a_fixture(self, file, fixture):
        assert may_start(file(f"def test_it(tmp_path, {fixture}): ..."))

    def test_is_so_of_a_file_that_names_the_mark(self, file):
        assert may_start(file("import pytest\n\npytestmark = pytest.mark.processes\n"))

    def test_is_so_where_a_folder_has_a_fixture_of_it(self, file, tmp_path):
        """As that of browsers needs the server."""
        (tmp_path / "outer" / "conftest.py").write_text("def browser(live_server): ...", encoding="utf-8")

        assert may_start(file("def test_it(browser): ..."))

    def test_is_not_so_of_any_other(self, file):
        assert not may_start(file("def test_it(worker, brokers): ..."))

    def test_leaves_out_most_files(self):
        files = list(TESTS.rglob("test_*.py"))

        assert 0 < len([path for path in files if may_start(path)]) < len(files) / 3


class TestCheck:
    def test_passes_what_is_found(self):
        check([TESTS / "test_forking.py", TESTS / "browser" / "test_live.py"])

    def test_refuses_a_file_that_says_nothing_of_it(self, file):
        path = file("from elsewhere import helper\n")

        with pytest.raises(Missed, match=r"test_it\.py"):
            check([path])
