"""What people call a task: what may be a title, and in which language it is said."""

from __future__ import annotations

import pytest
from django.utils import translation
from django.utils.functional import lazystr
from django.utils.translation import gettext_lazy

from timeline import Timeline, after, task
from timeline.definition.names import LONGEST_TITLE, first_paragraph
from timeline.exceptions import DefinitionError
from timeline.features.steps.declaration import code_of


def titled(title):
    class Reminding(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), title=title)
        def mail(self, order):
            """
            Say that it
            is near.

            By mail.
            """

    return Reminding


class TestTitle:
    def test_is_what_was_given(self):
        assert titled("Remind <them>").mail.title == "Remind <them>"
        assert titled("").mail.title == ""

    def test_is_said_in_the_language_of_the_moment(self):
        mail = titled(gettext_lazy("Yes")).mail

        assert mail.title == "Yes"
        with translation.override("de"):
            assert mail.title == "Ja"

    def test_is_one_line_whatever_a_translation_says(self):
        assert titled(lazystr(" Remind\nthem ")).mail.title == "Remind them"

    @pytest.mark.parametrize(
        "title", [7, None, b"mail", ["mail"], " ", " mail", "two\nlines", "a\x00", "x" * (LONGEST_TITLE + 1)]
    )
    def test_has_to_be_a_line_of_text(self, title):
        with pytest.raises(
            DefinitionError, match=r"Reminding\.mail: has title = .*Use text of one line, 100 characters"
        ):
            titled(title)

    def test_changes_neither_a_schedule_nor_what_a_handler_does(self):
        """Else each open row would be compared anew, and half done tasks rest, for a word."""
        one, other = titled("Remind"), titled("Remind them")

        assert one.mail.fingerprint == other.mail.fingerprint
        assert code_of(one) == code_of(other)


class TestDoc:
    def test_leaves_out_backticks_which_no_page_reads(self):
        def step():
            """Give ``right`` or ``wrong``."""

        assert first_paragraph(step) == "Give right or wrong."

    def test_is_the_first_paragraph_in_one_line(self):
        assert titled("").mail.doc == "Say that it is near."
