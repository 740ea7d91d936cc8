"""Duels: two acts on the same row at the same moment, many times, each side with a connection of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, NamedTuple

from django.db import connections

HEAD_START = 0.004  # Seconds that one of the two gets at most, by chance, so that both orders happen.
FIRST_STEP, LAST_STEP = 8, 0.5  # Of how long who came first waits longer the next time: as parts of the head start.
LANES = 2
PATIENCE = 120  # Seconds that one waits for the other; a busy machine takes its time.

Act = Callable[[Any], object]
Make = Callable[[Any], Any]
Results = list[tuple[Any, Any]]


class Done(NamedTuple):
    """What an act gave or raised, and when it began and was over, by ``monotonic()``."""

    did: Any
    began_at: float
    over_at: float


First = Callable[[Done, Done], bool]


class Lane:
    """
    Where two acts meet, round by round.

    Args:
        subjects: Of the rounds.
        make: As for ``duel``.
        left_first: Told what both did in a round: whether the left act came first. After each round the one that did waits a
            little longer, so that on machines of any speed both come first about as often. None: both wait alike.
        head_start: As for ``duel``.
        seed: Of chance.
    """

    def __init__(
        self, subjects: Sequence[Any], make: Make | None, left_first: First | None, head_start: float, seed: int
    ) -> None:
        self.gate = threading.Barrier(2, action=self._prepare)
        self.subjects = list(subjects)
        self._make = make
        self.waits = [0.0, 0.0]
        self.done: list[list[Any]] = []
        self._left_first = left_first
        self._head_start = head_start
        self._lead = 0.0  # Seconds that the right act is given beside what chance gives.
        self._step = FIRST_STEP * head_start
        self._came_first: bool | None = None
        self._random = Random(seed)  # noqa: S311 (the same each time)

    def _prepare(self) -> None:
        if self._left_first is not None and self.done:
            self._follow(bool(self._left_first(*self.done[-1])))
        lead = self._lead + self._random.uniform(-self._head_start, self._head_start)
        self.waits = [max(lead, 0), max(-lead, 0)]
        if self._make is not None:
            self.subjects[len(self.done)] = self._make(self.subjects[len(self.done)])
        self.done.append([None, None])

    def _follow(self, left_first: bool) -> None:
        """Let who came first wait longer: by large steps at the beginning, by smaller ones each time that it was the other."""
        if self._came_first is not left_first:
            self._step = max(self._step / 2, LAST_STEP * self._head_start)
        self._came_first = left_first
        self._lead += self._step if left_first else -self._step


def duel(
    left: Act,
    right: Act,
    subjects: Sequence[Any],
    *,
    lanes: int = LANES,
    head_start: float = HEAD_START,
    make: Make | None = None,
    left_first: First | None = None,
) -> Results:
    """
    Let two acts meet at each subject.

    Args:
        left, right: Given a subject; what they raise is a result too.
        subjects: One after the other, in several lanes at a time.
        lanes: How many.
        head_start: Seconds that one of the two gets at most by chance.
        make: Makes of a subject, right before its round, what the acts are given; None: it is given as it is.
        left_first: As for ``Lane``.

    Returns:
        The results of both, of each subject.
    """

    def side(lane: Lane, place: int) -> None:
        act = (left, right)[place]
        try:
            for number in range(len(lane.subjects)):
                lane.gate.wait(PATIENCE)
                done = lane.done[-1]
                time.sleep(lane.waits[place])
                done[place] = _do(act, lane.subjects[number])
        except BaseException:
            lane.gate.abort()
            raise
        finally:
            connections.close_all()

    made = [Lane(subjects[seed::lanes], make, left_first, head_start, seed) for seed in range(lanes)]
    with ThreadPoolExecutor(2 * lanes) as threads:
        sides = [threads.submit(side, lane, place) for lane in made for place in (0, 1)]
        for one in sides:
            one.result()
    found = [made[number % lanes].done[number // lanes] for number in range(len(subjects))]
    return [(first.did, second.did) for first, second in found]


def _do(act: Act, subject: Any) -> Done:
    began_at = time.monotonic()
    try:
        did = act(subject)
    except Exception as error:  # noqa: BLE001 (the test looks at it)
        did = error
    return Done(did, began_at, time.monotonic())
