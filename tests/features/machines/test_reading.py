"""Conditions and effects in pictures: each way has its line, and only the way that a run took is marked."""

from __future__ import annotations

from tests.features.machines.test_operations import Sale
from timeline.clocks import story_now
from timeline.features.machines.mermaid import table_as_mermaid
from timeline.features.machines.pictures import machine_picture
from timeline.features.machines.reading import MoveLine


class TestAPicture:
    def test_has_a_line_for_each_way(self):
        [box, *_others] = machine_picture(Sale.definition).boxes

        assert [line.text for line in box.lines] == [
            "sale.asked [is dear] → checked",
            "sale.asked [is paid] / note it → sent",
            "sale.noted / note it → the same, anew",
            "sale.sure [is paid] / note it → sent",
            "sale.sure → nothing",
        ]

    def test_marks_the_way_that_a_run_took(self, db):
        at = story_now("default")
        way = [("open", "open", "sale.noted"), ("open", "sent", "sale.asked")]
        moves = [
            MoveLine(seq=number, at=at, from_state=source, to_state=target, event=event, actor="", timeline="sale")
            for number, (source, target, event) in enumerate(way, 1)
        ]

        [box, *_others] = machine_picture(Sale.definition, moves=moves, now_in="sent").boxes

        assert [line.is_gone for line in box.lines] == [False, True, True, False, False]

    def test_of_mermaid_has_them_as_well(self):
        assert "s0 --> s2: sale.asked #91;is paid#93; #47; note it" in table_as_mermaid(Sale.definition)
