"""Who looks for the tests of a module finds them by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
ROOMS = ["dispatch", "engine", "models", "operations", "planning", "store", "timing", "worker"]

# Modules without logic of their own, and where what is in them is used.
WITHOUT = {
    "engine/guarding": "the last look asks them: engine/test_looking",
    "engine/watching": "a protocol, and the watch that does nothing: it is that of each run in engine/test_running",
    "engine/opening": "what becomes of a task outside of its window: stories/test_windows",
    "operations/_seeing_again": "asked by receivers that write: stories/test_receivers_that_write",
    "engine/superseding": "the last look asks it: engine/test_looking",
    "engine/resting": "what a rest looks at: engine/test_waiting",
    "models/admission": "columns only: store/test_admitting writes them",
    "models/bulk_action": "which tasks are meant: dispatch/test_acting_in_bulk, api/test_bulk",
    "models/edge": "columns only: store/test_edges writes them",
    "models/opening": "columns only: operations/test_opening writes them",
    "models/figure": "columns only: operations/test_rolling_up writes them",
    "models/pace": "columns only: dispatch/test_pacing writes them",
    "models/visits": "which rows a move reads, and tries: operations/test_machines_on, operations/test_machines_timers",
    "models/run_entry": "columns only: store/test_machines writes them",
    "models/wake": "columns only: operations/test_waking_others writes them",
    "models/seeking": "what the list is searched by: admin/test_list, dispatch/test_acting_in_bulk",
    "models/sign": "columns only: dispatch/test_signing writes them",
    "operations/reconciling_entity": "its runs are reconciled as any: operations/test_reconciling",
    "operations/reconciling_moved": "each move ends there: operations/test_machines_on",
    "operations/_carrying_out": "whatever is reconciled is carried out: operations/test_reconciling",
    "operations/choosing": "lookups that somebody types: operations/test_adopting_machines, management/test_enroll",
    "operations/_event_fields": "a shape only: operations/test_emitting",
    "operations/_rebinding": "a saved entity does it: engine/test_waiting_for_others_declared",
    "operations/_recording": "what emit and Then have in common: operations/test_emitting, operations/test_machines",
    "planning/answers": "shapes only: planning/test_planner",
    "planning/recurrences": "what it decides shows in the rows: operations/test_recurring",
    "store/awaiting": "what is found and locked for a wait: engine/test_waiting_for_others",
    "store/first_entries": "rows of what begins: store/test_beginning, operations/test_machines",
    "store/slots": "questions of one caller: operations/test_recurring, and beside others postgresql/test_recurring",
    "store/spreading": "when many runs become due: operations/test_enrolling, operations/test_emitting_many",
    "store/waiting": "what is found and recorded of waits: engine/test_waiting",
    "timing/awaiting": "a declaration, and what is wrong with one: engine/test_waiting_declared",
    "timing/entering": "a declaration, and what is wrong with one: timing/test_states",
    "timing/crons": "told by the same tests as all slots: timing/test_slots",
}

MODULES = sorted(
    f"{room}/{path.stem}"
    for room in ROOMS
    for path in (ROOT / "timeline" / room).glob("*.py")
    if path.stem != "__init__"
)


def has_tests(module: str) -> bool:
    """Whether there is a test file of its name; an underscore before that is left out."""
    room, _slash, name = module.partition("/")
    return (ROOT / "tests" / room / f"test_{name.removeprefix('_')}.py").is_file()


class TestEachModule:
    def test_is_looked_at(self):
        assert len(MODULES) > 100

    @pytest.mark.parametrize("module", MODULES)
    def test_has_a_test_file_of_its_name_or_a_line_that_says_why_not(self, module):
        assert has_tests(module) is (module not in WITHOUT)


class TestEachLine:
    @pytest.mark.parametrize("module", WITHOUT)
    def test_is_about_a_module_that_is_there(self, module):
        assert module in MODULES
