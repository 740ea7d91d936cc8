"""Duels: two acts on the same row at the same moment, many times, each side with a connection of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

from django.db import connections

HEAD_START = (
    0.004  # Seconds that one of the two gets at most, now this one and now that one, so that both orders happen.
)
LANES = 2

Act = Callable[[Any], object]


def duel(
    left: Act, right: Act, subjects: Sequence[Any], *, lanes: int = LANES, head_start: float = HEAD_START
) -> list[tuple[Any, Any]]:
    """
    Let two acts meet at each subject.

    Args:
        left, right: Given a subject; what they raise is a result too.
        subjects: One after the other, in several lanes at a time.
        lanes: How many.
        head_start: Seconds that one of the two gets at most, now this one and now that one, so that both orders happen.

    Returns:
        The results of both, of each subject.
    """
    results: list[list[Any]] = [[None, None] for _ in subjects]

    def side(lane: int, place: int, gate: threading.Barrier) -> None:
        act, random = (left, right)[place], Random(lane)  # noqa: S311 (the same on both sides of a lane)
        try:
            for number in range(lane, len(subjects), lanes):
                ahead, later = random.random() * head_start, random.randrange(2)
                gate.wait(30)
                if place == later:
                    time.sleep(ahead)
                results[number][place] = _result(act, subjects[number])
        except BaseException:
            gate.abort()
            raise
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2 * lanes) as threads:
        sides = []
        for lane in range(lanes):
            gate = threading.Barrier(2)
            sides += [threads.submit(side, lane, place, gate) for place in (0, 1)]
        for one in sides:
            one.result()
    return [(first, second) for first, second in results]


def _result(act: Act, subject: Any) -> object:
    try:
        return act(subject)
    except Exception as error:  # noqa: BLE001 (the test looks at it)
        return error
