"""README and the lessons of the tutorial, done word for word: the lessons one after the other in one project."""

from __future__ import annotations

from codeop import compile_command

import pytest

from tests.followed import follow, is_shown, steps_of
from tests.pages import DOCS, README

LESSONS = sorted((DOCS / "tutorial").glob("[1-9]-*.md"))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """An empty folder, and the lessons that were done in it."""
    return tmp_path_factory.mktemp("project"), []


class TestReadme:
    def test_can_be_done_word_for_word(self, tmp_path):
        """The same with the package as it is published, and a worker, is in test_installed.py."""
        follow(README, tmp_path)


class TestLessons:
    @pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
    def test_can_be_done_word_for_word(self, project, lesson):
        """Those before it are done first."""
        folder, done = project

        for each in LESSONS[len(done) : LESSONS.index(lesson) + 1]:
            done.append(each)
            follow(each, folder)


def shells():
    """What is typed into a shell, with its page."""
    return [
        pytest.param(step.text, id=f"{page.stem}-{number}")
        for page in (README, *LESSONS)
        for number, step in enumerate(steps_of(page.read_text(encoding="utf-8")))
        if step.language == "python" and not step.file
    ]


class TestShell:
    @pytest.mark.parametrize("text", shells())
    def test_has_nothing_left_to_run_when_it_was_typed(self, text):
        """A plain shell waits for an empty line after a block, and a page cannot press Enter."""
        typed: list[str] = []
        for line in text.splitlines():
            typed.append(line)
            if compile_command("\n".join(typed), symbol="single"):
                typed = []

        assert not [line for line in typed if line.strip()]


class TestIsShown:
    @pytest.mark.parametrize(
        ("shown", "shows"),
        [
            ("a b c", True),
            ("a …", True),
            ("… b …", True),
            ("a … c", True),
            ("a b c …", True),
            ("a b", False),
            ("b c", False),
            ("a c", False),
            ("… c b", False),
        ],
    )
    def test_tells_what_a_page_leaves_out(self, shown, shows):
        assert is_shown(shown.split(), ["a", "b", "c"]) == shows
