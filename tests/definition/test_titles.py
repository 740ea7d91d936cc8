"""What people call a task: what may be a title, and in which language it is said."""

from __future__ import annotations

from enum import StrEnum

import pytest
from django.utils import translation
from django.utils.functional import lazystr
from django.utils.translation import gettext_lazy

from timeline import Machine, Timeline, after, task
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


class Where(StrEnum):
    OPEN = "open"


def named(names):
    class Returning(Timeline):
        entity = "testapp.Order"
        starts_on = "order.placed"
        exits = {"order.returned": "returned"}
        titles = names

        @task(after(days=1))
        def mail(self, order): ...

    return Returning


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


class TestTitlesOfNames:
    """Of events, states and exits."""

    def test_are_said_in_the_language_of_the_moment_beside_the_name(self):
        definition = named({"order.returned": gettext_lazy("Yes"), "returned": "It came back"}).definition

        assert definition.title_of("order.returned") == "Yes"
        assert definition.titled("returned") == "It came back (returned)"
        assert definition.titled("order.placed") == "order.placed"
        with translation.override("de"):
            assert definition.titled("order.returned") == "Ja (order.returned)"

    def test_are_of_conditions_too(self):
        def has_paid(order): ...

        class Dunning(Timeline):
            entity = "testapp.Order"
            titles = {"has_paid": "it is paid"}

            @task(after(days=1), unless=has_paid)
            def dun(self, order): ...

        assert Dunning.definition.title_of("has_paid") == "it is paid"

    def test_are_inherited_though_a_class_has_other_events(self):
        class Heir(named({"order.returned": "it came back"})):
            name = "heir"
            starts_on = "order.sold"
            exits = {}

        assert Heir.definition.title_of("order.returned") == "it came back"

    def test_are_of_states_and_events_of_a_machine_too_which_may_be_members_of_an_enum(self):
        class Door(Machine):
            entity = "testapp.Order"
            starts_on = "door.made"
            initial = "shut"
            table = {"shut": {"door.opened": "open"}, "open": {}}
            titles = {Where.OPEN: "wide open", "door.opened": "somebody went in"}

        assert Door.definition.titled("open") == "wide open (open)"
        assert Door.definition.title_of("door.opened") == "somebody went in"

    def test_of_what_the_timeline_does_not_have_are_refused_with_the_name_that_is_meant(self):
        with pytest.raises(
            DefinitionError, match=r"Returning: has a title for 'order.retuned'.*Did you mean 'order.returned'\?"
        ):
            named({"order.retuned": "It came back"})
        with pytest.raises(
            DefinitionError, match=r"Name an event, a state, an exit or a condition of it; a task has its title in"
        ):
            named({"mail": "Remind"})

    @pytest.mark.parametrize("titles", ["order.returned", ["order.returned"], None])
    def test_have_to_be_a_dict(self, titles):
        with pytest.raises(DefinitionError, match=r"Returning: has titles = .*Use a dict"):
            named(titles)

    def test_have_to_be_lines_of_text(self):
        with pytest.raises(DefinitionError, match=r"has title = 7 for 'returned'. Use text of one line"):
            named({"returned": 7})

    def test_leave_a_task_that_is_called_so(self):
        class Books(Timeline):
            entity = "testapp.Order"

            @task(after(days=1))
            def titles(self, order): ...

        assert list(Books.definition.tasks) == ["titles"]
        assert Books.definition.titles == {}
