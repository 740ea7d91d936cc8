"""Somebody who meddles with bookings past their machine: by raw SQL, by rows that were read long ago, by hand."""

from __future__ import annotations

import random
from collections import Counter

from django.db import IntegrityError, connection, transaction

from project.portal.models import Booking
from project.portal.states import S
from project.portal.timelines import Booking as BookingMachine
from timeline.exceptions import StateMoved
from timeline.models import TimelineRun


class Meddler:
    """
    Tries what must not work, each time on one open booking, and counts what became of it.

    Args:
        seed: Of the chances.
    """

    def __init__(self, *, seed: int = 1) -> None:
        self.counts = Counter[str]()
        self.wrong: list[str] = []
        self._chances = random.Random(seed)  # noqa: S311 (chances of a demonstration)
        self._old: list[Booking] = []

    @property
    def tries(self) -> int:
        """How often it was tried."""
        return sum(count for what, count in self.counts.items() if not what.endswith("refused"))

    @property
    def refused(self) -> int:
        """How often that was refused with an error."""
        return self.counts.total() - self.tries

    def act(self) -> None:
        """Move one by raw SQL to where its table does not lead; save one as it was long ago; give one another state by hand."""
        runs = TimelineRun.objects.open().filter(timeline="booking")
        if (count := runs.count()) == 0:
            return
        run = runs.order_by("pk")[self._chances.randrange(count) : count].first()
        if run is None:
            return
        booking = Booking.objects.get(pk=run.entity_id)
        self._move_by_sql(run)
        self._give_a_state(booking)
        self._save_an_old_one(booking)

    def _move_by_sql(self, run: TimelineRun) -> None:
        self.counts["raw SQL"] += 1
        machine = BookingMachine.definition.machine
        edges = machine.edges if machine else frozenset()
        nowhere = [str(state) for state in S if (run.state, str(state)) not in edges and state != run.state]
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE timeline_timelinerun SET state = %s, moves = moves + 1 WHERE id = %s AND state = %s",
                    [
                        self._chances.choice(nowhere),
                        TimelineRun._meta.pk.get_db_prep_value(run.pk, connection),
                        run.state,
                    ],
                )
                if cursor.rowcount:
                    self.wrong.append(f"Raw SQL moved {run.entity_id} from {run.state}.")
                    transaction.set_rollback(True)
        except IntegrityError:
            self.counts["raw SQL, refused"] += 1

    def _give_a_state(self, booking: Booking) -> None:
        if booking.state == S.CREATED:  # To which none comes back, so that it cannot be there by the time.
            return
        self.counts["state by hand"] += 1
        booking.state = S.CREATED
        try:
            booking.save(update_fields=["state"])
        except StateMoved:
            self.counts["state by hand, refused"] += 1
        else:
            self.wrong.append(f"A state given by hand to {booking.pk} was saved.")

    def _save_an_old_one(self, booking: Booking) -> None:
        """That this moves nothing is seen at the end: each row has to show where its run is."""
        self._old.append(Booking.objects.get(pk=booking.pk))
        if len(self._old) > 5:
            self._old.pop(0).save(update_fields=["name", "state"])
            self.counts["old row saved"] += 1
