"""What ``make release`` builds. That it follows README with the wheel is seen by running it."""

from __future__ import annotations

import pytest

import release
from tests.packages import ROOT, copy_of_source


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout in which all is committed."""
    source = copy_of_source(tmp_path)
    (source / ".gitignore").write_text("/build/\n")
    monkeypatch.setattr(release, "ROOT", source)
    for command in (["init"], ["add", "."], ["commit", "--message", "All of it"]):
        release.run("git", "-c", "user.name=ada", "-c", "user.email=a@example.com", *command)
    return source


class TestExport:
    def test_takes_what_is_committed_alone(self, checkout, tmp_path):
        (checkout / "build").mkdir()
        (tmp_path / "elsewhere").mkdir()

        taken = release.export(tmp_path / "elsewhere")

        assert {file.name for file in taken.iterdir()} == {file.name for file in checkout.iterdir()} - {".git", "build"}

    def test_refuses_a_checkout_with_more_than_that(self, checkout, tmp_path):
        (checkout / "timeline" / "more.py").touch()

        with pytest.raises(SystemExit, match="commit or remove first"):
            release.export(tmp_path)


class TestFollowed:
    def test_are_tests_that_are_there(self):
        assert [test for test in release.FOLLOWED.values() if not (ROOT / test).exists()] == []
