"""Where the tasks, times and ways of a timeline stand on a drawing."""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations

import pytest
from django.db.models import Q
from django.template.loader import render_to_string

from project.accounts.timelines import Trial
from project.billing.timelines.customers import Onboarding
from project.billing.timelines.settlement import Settlement
from tests.machines import Booking
from timeline import Timeline, after, after_run, at, before, created, daily, each_of, every, task, wait_for
from timeline.features.machines.pictures import machine_picture
from timeline.reading.picture_shapes import CARD, CHIP, EDGE, PAD, SIGNS, Chip
from timeline.reading.timeline_pictures import guards_of, starts_of, timeline_picture
from timeline.registry import registry


def has_payment(_order):
    return False


class Paying(Timeline):
    """With a title for its condition."""

    entity = "testapp.Order"
    titles = {"has_payment": "it is paid for"}

    @task(after(), unless=has_payment)
    def greet(self, order): ...


class Care(Timeline):
    """With all that there may be."""

    entity = "testapp.Order"
    starts_on = ("order.placed", created())
    exits = {"order.returned": "returned", "order.closed": "closed"}

    @task(after(), title="Say hello to somebody who has a name that is longer than a card is wide", unless=has_payment)
    def greet(self, order):
        """Say it."""

    @task(after(greet, days=3), only_if=Q(note="x"))
    def ask(self, order):
        """
        Ask, and wait for the answer, which may take long; then ask again, and wait for the other answer, which may take longer
        than the first one did, so that nobody has the patience to read all of this sentence.
        """

    @task(after(ask))
    def thank(self, order): ...

    @task(after(greet, days=1))
    def look(self, order): ...

    @task(before("ships_at", days=2))
    def pack(self, order): ...

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(each_of(ship))  # of fan_out
    def label(self, order): ...

    @task(every(days=7))
    def figures(self, order): ...

    @task(wait_for("order.paid", within=timedelta(days=14)))
    def paid(self, order): ...

    @task()
    def call(self, order): ...


class Nightly(Timeline):
    starts_on = daily("02:00")

    @task(after())
    def settle(self): ...


class Report(Timeline):
    starts_on = after_run(Nightly)

    @task(after(days=1))
    def report(self): ...


class ByHand(Timeline):
    """Nothing starts it by itself."""

    @task()
    def call(self): ...


ALL = [Care, Nightly, Report, ByHand, Trial, Onboarding, Settlement, Booking]


def cards_of(picture):
    return {card.name: card for card in picture.cards}


class TestPicture:
    def test_has_an_axis_for_each_thing_that_times_count_from(self):
        picture = timeline_picture(Care.definition)

        assert [(band.title, [mark.text for mark in band.marks]) for band in picture.bands] == [
            ("From the start of the run", ["start", "+ 1 day", "+ 3 days", "+ 7 days", "+ 14 days"]),
            ("Around ships_at", ["− 2 days", "ships_at"]),
            ("On demand, by schedule()", []),
        ]

    def test_has_each_task_at_its_time(self):
        picture = timeline_picture(Care.definition)

        cards, (start, ships, _demand) = cards_of(picture), picture.bands
        at_time = {mark.text: mark.x for mark in [*start.marks, *ships.marks]}
        assert set(cards) == set(Care.definition.tasks)
        assert cards["greet"].x == at_time["start"] == EDGE
        assert cards["ask"].x == at_time["+ 3 days"]
        assert cards["pack"].x == at_time["− 2 days"] < cards["ship"].x == at_time["ships_at"]
        assert cards["thank"].x > cards["ask"].x  # At the same time, and behind it.

    def test_leads_from_each_task_to_what_follows_it(self):
        picture = timeline_picture(Care.definition)

        cards = cards_of(picture)
        drawn = {(edge.x, edge.top, edge.bottom, edge.right) for edge in picture.edges}
        followers = [
            ("greet", "ask"),
            ("ask", "thank"),
            ("greet", "look"),
            ("ship", "label"),  # of fan_out
        ]
        assert drawn == {
            (cards[one].stem, cards[one].bottom, cards[other].middle, cards[other].x) for one, other in followers
        }

    def test_says_title_key_time_guards_and_docstring(self):
        card = cards_of(timeline_picture(Care.definition))["greet"]

        assert (
            " ".join(line.text for line in card.lines if line.kind == "title") == Care.definition.tasks["greet"].title
        )
        told = [(line.kind, line.text) for line in card.lines if line.kind != "title"]
        assert told == [
            ("key", "greet"),
            ("when", "at the start of the run"),
            ("guard", "◇ unless has payment"),
            ("doc", "Say it."),
        ]

    def test_tells_kinds_apart(self):
        cards = cards_of(timeline_picture(Care.definition))

        kinds = {name: (card.kind, card.sign, card.sign_word) for name, card in cards.items() if card.kind != "task"}
        assert kinds == {
            "paid": ("wait", SIGNS["wait"], ""),
            "figures": ("series", SIGNS["series"], ""),
            "label": ("each", "", "×n"),  # of fan_out
        }

    def test_needs_no_font_that_has_more_than_letters(self):
        """Technical signs and emoji show as boxes where there is no font for them: those are drawn."""
        drawn = [
            render_to_string("timeline/timeline.svg", {"picture": timeline_picture(Care.definition)}),
            render_to_string("timeline/machine.svg", {"picture": machine_picture(Booking.definition)}),
        ]

        assert [sign for text in drawn for sign in text if "\u2300" <= sign <= "\u23ff" or sign > "\U0001f000"] == []
        assert SIGNS["wait"] in drawn[0]
        assert "tl-m-timer" in drawn[1]

    def test_says_what_starts_and_ends_runs(self):
        picture = timeline_picture(Care.definition)

        assert [chip.text for chip in picture.starts.chips] == ["▸ order.placed", "▸ a new row of testapp.order"]
        assert [chip.text for chip in picture.exits.chips] == ["■ order.returned → returned", "■ order.closed → closed"]
        assert [chip.text for chip in timeline_picture(ByHand.definition).starts.chips] == ["▸ by hand only"]

    @pytest.mark.parametrize("declared", ALL)
    def test_lets_nothing_cover_anything(self, declared):
        counts = {name: [Chip("1,000+ open", "open", "?")] * 5 for name in declared.definition.tasks}

        picture = timeline_picture(declared.definition, counts)

        for one, other in combinations(picture.cards, 2):
            assert one.bottom < other.y or other.bottom < one.y
        for edge in picture.edges:
            crossed = [card for card in picture.cards if edge.top < card.y < edge.bottom and card.x <= edge.x]
            assert crossed == []
        for card in picture.cards:
            assert EDGE <= card.x <= picture.width - CARD - EDGE
            assert all(card.y < line.y < card.bottom for line in card.lines)
            assert all(card.bottom >= chip.y + CHIP for chip in card.chips)
            assert all(chip.x + chip.width <= card.x + CARD - PAD for chip in card.chips)
        assert all(card.bottom < picture.height for card in picture.cards)
        assert all(chip.y + CHIP < picture.height for chip in picture.exits.chips)

    @pytest.mark.parametrize("declared", ALL)
    def test_has_room_for_the_words_on_an_axis(self, declared):
        for band in timeline_picture(declared.definition).bands:
            for one, other in zip(band.marks, band.marks[1:], strict=False):
                assert other.x - one.x > len(one.text) * 6

    def test_can_be_made_of_each_timeline_there_is(self):
        for definition in registry:
            assert timeline_picture(definition).height > 0


class TestStartsOf:
    def test_says_them_in_a_few_words(self):
        assert starts_of(Nightly.definition) == ["every day at 02:00 in UTC"]
        assert starts_of(Report.definition) == ["after a run of nightly (completed)"]


class TestGuardsOf:
    def test_says_functions_by_their_names_and_conditions_as_they_are(self):
        tasks = Care.definition.tasks

        assert guards_of(Care.definition, tasks["greet"]) == ["unless has payment"]
        assert guards_of(Care.definition, tasks["ask"]) == ["only if (AND: ('note', 'x'))"]
        assert guards_of(Care.definition, tasks["thank"]) == []

    def test_says_a_title_followed_by_the_name(self):
        definition = Paying.definition

        assert guards_of(definition, definition.tasks["greet"]) == ["unless it is paid for (has_payment)"]
