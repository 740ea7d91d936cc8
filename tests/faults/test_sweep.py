"""
The crash-point sweep: each operation dies before and after each of its statements and each COMMIT, and all comes right.

How many points there are stands in ``points.json``; with ``SWEEP_WRITE=1`` it is written anew.
"""

from __future__ import annotations

import gc
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings

from tests.faults.doors import Doors
from tests.faults.dying import Points
from tests.faults.keeping import Kept
from tests.faults.likeness import likeness
from tests.faults.operations import OPERATIONS, arranged
from tests.faults.seeing import Seen
from tests.faults.world import (
    JOURNALS,
    Born,
    Crossing,
    Doomed,
    Elsewhere,
    Fanning,
    Narrow,
    Repeated,
    Stepped,
    Waiting,
    World,
    check,
    picture,
    restart,
    wipe,
)
from timeline.store.multi_query import can_pipeline
from timeline.testing import only_timelines
from timeline.timelines import Alerts

pytestmark = pytest.mark.django_db(transaction=True)

TIMELINES = [World, Born, Stepped, Fanning, Doomed, Waiting, Elsewhere, Repeated, Narrow, Crossing, Doors, Alerts]
FILE = Path(__file__).parent / "points.json"
SWEPT = [
    pytest.param(name, marks=pytest.mark.only_postgresql if operation.by_pipeline else ())
    for name, operation in OPERATIONS.items()
]


@pytest.fixture(autouse=True, scope="module")
def _quick_collections():
    """After each death all garbage is collected: let the collector pass over what was there before."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _world():
    """What is found is made once, and leases that it has last for all plays."""
    told = {**settings.TIMELINE, "ALERTS": ["ops@example.com"], "LEASE": timedelta(hours=1)}
    with (
        only_timelines(*TIMELINES),
        override_settings(TIMELINE=told),
    ):
        yield
    wipe()


def known() -> dict[str, dict[str, int]]:
    return json.loads(FILE.read_text()) if FILE.exists() else {}


@pytest.fixture
def play(name):
    """Let an operation die at a point, or not; give its scene, and the points it passed. It always finds the same."""
    operation = OPERATIONS[name]
    wipe()
    first = arranged(operation)
    kept = Kept(*JOURNALS)

    def played(at=None):
        kept.put_back()
        scene, points = first.again(), Points(at)
        with scene.clock.told(), points.passing():
            operation.act(scene)
        if points.dead and connection.vendor == "sqlite":
            # What asyncio keeps of an error keeps its statement, and with that SQLite's lock.
            gc.collect()
        return scene, points

    yield played
    kept.forget()


def end(operation, scene):
    """Let all that is left be run; give what there is then."""
    if operation.to_the_end:
        with scene.clock.told():
            restart(scene.clock)
    return picture(check())


class TestSweep:
    @pytest.mark.parametrize("name", SWEPT)
    def test_comes_right_wherever_it_dies(self, name, play, capsys):
        """It has happened, or nothing of it; asked again and worked off, it ends as if nobody had died."""
        operation, before = OPERATIONS[name], picture()
        play()  # What is asked once a process is asked here.
        scene, points = play()
        after = picture(check())
        final = end(operation, scene)

        last, ended = len(points.passed) - 1, []
        for at, point in enumerate(points.passed):
            scene, died = play(at)
            where = f"{name}, {point} ({at})"
            assert died.dead, where
            seen = check()
            there = picture(seen)
            if operation.whole:
                assert there in (before, after), where
            if operation.again and there != after:
                with scene.clock.told():
                    operation.act(scene)
                seen = Seen()
                there = picture(seen)
            if operation.whole:
                assert there == after, where
            like = None if operation.whole else likeness(seen)
            if at in (0, last) or (not operation.whole and like not in ended):  # Else it is as it was after others.
                ended.append(like)
                assert end(operation, scene) == final, where

        with capsys.disabled():
            print(f"{name}: {len(points.passed)} points")
        counted = len(points.passed)
        self.compare(name, counted)

    def compare(self, name, counted):
        there = known()
        if os.environ.get("SWEEP_WRITE"):
            there.setdefault(connection.vendor, {})[name] = counted
            FILE.write_text(json.dumps(there, indent=2, sort_keys=True) + "\n")
        assert counted >= there[connection.vendor][name], f"{name} has fewer points than it had; see points.json"

    def test_leaves_no_operation_out(self, capsys):
        """What is in the file is swept, and in all there are as many as it says."""
        there = known()[connection.vendor]

        with capsys.disabled():
            print(f"in all: {sum(there.values())} points of {len(there)} operations on {connection.vendor}")
        by_pipeline = can_pipeline(connection.alias)
        assert set(there) == {name for name, one in OPERATIONS.items() if by_pipeline or not one.by_pipeline}
