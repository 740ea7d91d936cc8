"""What must hold of the sweep's world is objected to where it does not, and what is put back is what there was."""

from __future__ import annotations

import pytest

from tests.faults.doors import Doors
from tests.faults.keeping import Kept
from tests.faults.likeness import likeness
from tests.faults.operations import OPERATIONS, Scene, arranged
from tests.faults.seeing import TABLES, Seen
from tests.faults.world import (
    CALLED,
    ENTERED,
    JOURNALS,
    Crossing,
    Fanning,
    Narrow,
    Repeated,
    Stepped,
    Waiting,
    World,
    check,
    wipe,
)
from tests.testapp.models import Effect
from timeline.models import LogEntry, RunEntry, ScheduledTask, StepRecord
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

TIMELINES = [World, Stepped, Fanning, Waiting, Repeated, Narrow, Crossing, Doors]


def gone(**conditions):
    """Tasks, and their logs, are gone."""
    LogEntry.objects.filter(**{f"task__{name}": value for name, value in conditions.items()}).delete()
    ScheduledTask.objects.filter(**conditions).delete()


# Operation, whether it is done, and what is wrong then: the check of which kind objects.
WRONG = {
    "a handler that was entered, and nobody knows": ("run, plain", True, ENTERED.clear),
    "a step that wrote nothing": ("run, steps", True, Effect.objects.filter(name__startswith="reserve").delete),
    "a step that was not called": ("run, steps", True, CALLED.clear),
    "a part that is not there": ("run, fanned out", False, lambda: gone(task_key="fanning.part", occurrence="b")),
    "an answer that nobody gave": ("run, waked", True, lambda: StepRecord.objects.update(result=None)),
    "an occurrence that is left out": ("run, repeats", True, lambda: gone(task_key="repeated.nudge", occurrence="2")),
    "a place too many": ("run, limited", False, lambda: ScheduledTask.objects.filter(slot=1).update(slot=2)),
    "a move without an entry": ("emit, moves", True, lambda: RunEntry.objects.filter(seq=1).delete()),
    "a state without its timer": ("emit, timers", False, lambda: gone(task_key="doors.timer:door.late")),
}


@pytest.fixture
def scene(request):
    """What an operation finds."""
    wipe()
    with only_timelines(*TIMELINES):
        yield arranged(OPERATIONS[request.param])
    wipe()


def act(name: str, scene: Scene) -> None:
    with scene.clock.told():
        OPERATIONS[name].act(scene)


class TestCheck:
    @pytest.mark.parametrize(
        ("scene", "name", "done", "spoil"),
        [(name, name, *rest) for name, *rest in WRONG.values()],
        ids=WRONG,
        indirect=["scene"],
    )
    def test_objects_to_what_is_wrong(self, scene, name, done, spoil):
        if done:
            act(name, scene)
        check()

        spoil()

        with pytest.raises(AssertionError):
            check()


class TestKept:
    @pytest.mark.parametrize("scene", ["run, steps"], indirect=True)
    def test_is_put_back_as_it_was(self, scene):
        """Every row of each table, with its key, and what was noted outside of them."""
        kept, before, noted = Kept(*JOURNALS), rows(), [list(journal) for journal in JOURNALS]
        act("run, steps", scene.again())
        assert rows() != before
        assert [list(journal) for journal in JOURNALS] != noted

        kept.put_back()

        assert rows() == before
        assert [list(journal) for journal in JOURNALS] == noted
        kept.forget()


class TestLikeness:
    @pytest.mark.parametrize("scene", ["run, atomic"], indirect=True)
    def test_is_of_what_is_there(self, scene):
        before = likeness(Seen())

        assert likeness(Seen()) == before
        act("run, atomic", scene)
        assert likeness(Seen()) != before


def rows():
    seen = Seen()
    return {model: seen[model] for model in TABLES}
