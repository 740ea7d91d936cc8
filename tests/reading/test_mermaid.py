"""A machine as text for Mermaid."""

from __future__ import annotations

from tests.features.machines.test_reading_pictures import Door
from tests.machines import Booking
from timeline import Machine, Timeline, after, task
from timeline.features.machines.mermaid import table_as_mermaid
from timeline.reading.text_pictures import mermaid_of


class TestMermaid:
    def test_has_each_state_and_each_way(self):
        assert table_as_mermaid(Door.definition).splitlines() == [
            "stateDiagram-v2",
            '    state "shut" as s0',
            '    state "open" as s1',
            '    state "held" as s2',
            '    state "gone" as s3',
            "    [*] --> s0",
            "    s0 --> s1: door.opened",
            "    s1 --> s0: door.shut",
            "    s1 --> s1: door.pushed",
            "    s1 --> s2: door.late",
            "    note right of s2: back by door.freed",
            "    s3 --> [*]",
            "    note left of s0: any open state takes door.torn → gone",
        ]

    def test_has_each_task_of_what_is_no_machine_with_what_it_follows(self):
        class Care(Timeline):
            entity = "testapp.Order"
            starts_on = "order.placed"
            exits = {"order.returned": "returned"}

            @task(after(days=3), unless=bool, title="Say hello")
            def greet(self, order): ...

            @task(after(greet, days=7))
            def follow_up(self, order): ...

            @task()
            def call(self, order): ...

        assert mermaid_of(Care.definition).splitlines() == [
            "flowchart LR",
            '    run(["order.placed"])',
            '    t0["Say hello<br>3 days after the start of the run<br>unless bool"]',
            '    t1["follow_up<br>7 days after greet completes"]',
            '    t2["call"]',
            "    run --> t0",
            "    t0 --> t1",
            '    x0{{"order.returned → returned"}}',
            "    run -.-> x0",
        ]

    def test_names_all_28_states(self):
        text = table_as_mermaid(Booking.definition)

        assert all(f'state "{state}" as ' in text for state in Booking.definition.machine.states)

    def test_takes_the_meaning_from_hostile_names(self):
        class Hostile(Machine):
            entity = "testapp.Order"
            initial = '"a;%%{init}'
            table = {'"a;%%{init}': {'b"-->[*]<script>': "c#"}, "c#": {}}

        lines = table_as_mermaid(Hostile.definition).splitlines()

        assert lines[1] == '    state "#34;a#59;#37;#37;#123;init#125;" as s0'
        assert lines[4] == "    s0 --> s1: b#34;--#62;#91;#42;#93;#60;script#62;"
