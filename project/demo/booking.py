"""The bookings told: 200 go through a hostile portal while the workers that take them there are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import deque
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from time import monotonic, sleep

from django.conf import settings
from django.db.models import Min, Q, QuerySet
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from project.demo.applicants import Crowd, applicants
from project.demo.clock import STANDING, SettableClock, now
from project.demo.fates import Fates, fates, table_of_ends, table_of_rests, told_by
from project.demo.joining import tell
from project.demo.meddling import Meddler
from project.demo.outsiders import read_books, start_portal
from project.demo.processes import Interrupted, interruptible, start_process
from project.portal.models import Booking
from project.portal.states import S
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun

WORKERS, THREADS = 2, 2
# Seconds of a day: fifteen minutes of the story in a second, four where workers have a lot to do, and a second in a second
# where they cannot follow. Else codes would be late and reservations over only because there are so many bookings.
FAST, SLOW, REAL = 96.0, 360.0, 86_400.0
A_LOT = 12  # Tasks that are due.
TOO_LATE = timedelta(minutes=20)  # In story time, a task that nobody has begun.
# Two crowds come; the second finds it closing.
FIRST, LAST = timedelta(hours=18, minutes=30), timedelta(hours=21, minutes=50)
LAST_SHARE, COMING_FOR = 0.12, timedelta(minutes=30)
AT_ONCE = 20  # So many apply between two looks at all others.
TOGETHER = timedelta(minutes=4)  # When the clock is set on, what comes so soon after the next comes with it.
KILL_EVERY = 9.0  # Seconds, as long as most are under way.
DONE_BEFORE = 10  # Tasks.
MEDDLE_EVERY = 1.0  # Seconds.
WITHIN = 51.0  # Seconds, then it ends as it is, unless more time is given.


def book(count: int, *, within: float = WITHIN, seed: int = 1, console: Console) -> None:
    """
    Take so many bookings through the portal, kill a worker every few seconds, and say how each ended; leave nothing running.

    Args:
        count: Of bookings, at least 1.
        within: Seconds; what is open then rests as it is, and is counted.
        seed: Of all chances.
        console: Where it is shown.

    Raises:
        SystemExit: if something does not add up, or if it is interrupted.
    """
    try:
        with interruptible(), ExitStack() as stack:
            day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            clock = SettableClock(Path(settings.DATA_DIR) / "clock", seconds_per_day=FAST, begin=day + FIRST)
            stack.callback(clock.run_at, STANDING)  # Commands that come later are told when it ended.
            start_portal(stack, seed=seed)
            tell(Path(settings.DATA_DIR))
            told = _Told(stack, clock, day, count, seed, console)
            told.tell(within)
            books = read_books(settings.PORTAL_URL)
    except Interrupted:
        raise SystemExit("\nStopped: all that worked for it has ended.") from None
    found = fates()
    booked = set(Booking.objects.filter(state=S.BOOKED).values_list("reference", flat=True))
    found.wrong += told.meddler.wrong + (told_by(books, booked) if told.is_over else [])
    print_fates(found, console)
    if still := TimelineRun.objects.filter(timeline="booking", ended_at=None).count():
        console.print(
            f"The time was over before {still:,} bookings had ended: they are as they were then.", highlight=False
        )
    console.print(
        f"The portal: {books['calls']:,} calls, {books['failed']} failed, {books['lost']} answers lost, "
        f"{books['strange']} of a kind that nobody knows, booked twice: {books['booked_twice']}. "
        f"Workers killed: {told.killed}.\n"
        f"Moves by raw SQL, states given by hand, old rows saved: {told.meddler.tries:,} tries, "
        f"{told.meddler.refused:,} refused, the others without effect; moved by them: {len(told.meddler.wrong)}.",
        highlight=False,
        soft_wrap=True,
    )
    if found.wrong or found.count != count:
        raise SystemExit("\n".join([*found.wrong, f"{found.count} of {count} bookings are there."]))


def print_fates(found: Fates, console: Console) -> None:
    """Print how they ended, how long they rested, and that it adds up."""
    console.print(table_of_ends(found))
    console.print(table_of_rests(found))
    said = "each run is where its entries lead, each move is one of the table's, and what rests has a timer"
    console.print(
        f"{found.moves:,} moves of {found.count:,} bookings looked at: {said if not found.wrong else 'see below'}.",
        highlight=False,
        soft_wrap=True,
    )


class _Told:
    """
    The story under way.

    Args:
        stack: What is started ends with it.
        clock: Of the story.
        day: Midnight before it begins.
        count: How many apply.
        seed: Of all chances.
        console: Where it is shown.
    """

    def __init__(
        self, stack: ExitStack, clock: SettableClock, day: datetime, count: int, seed: int, console: Console
    ) -> None:
        self.stack, self.clock, self.console = stack, clock, console
        late = round(count * LAST_SHARE)
        crowds = ((day + FIRST, count - late), (day + LAST, late))
        moments = [begin + COMING_FOR * number / many for begin, many in crowds for number in range(many)]
        self.to_come = deque(zip(moments, islice(applicants(seed), count), strict=True))
        self.count = count
        self.crowd = Crowd(seed=seed)
        self.meddler = Meddler(seed=seed)
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.started = self.killed = 0
        self.is_over = False
        self._chances = random.Random(seed)  # noqa: S311 (whom a demonstration kills)
        for _ in range(WORKERS):
            self._start_worker()

    def tell(self, within: float) -> None:
        """Let people apply, act and be waited for, until all has ended, or the time is over."""
        began = monotonic()
        kill_at, meddle_at = began + KILL_EVERY / 2, began
        columns = (TextColumn("{task.description}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console) as progress:
            bar = progress.add_task("Bookings", total=self.count)
            while not self.is_over and monotonic() - began < within:
                at = now()
                self._let_come(at)
                acts_next = self.crowd.act(at)
                ended = TimelineRun.objects.filter(timeline="booking", ended_at__isnull=False).count()
                progress.update(bar, completed=ended, description=f"{at:%a %H:%M}  bookings that have ended")
                self.is_over = ended == self.count and not ScheduledTask.objects.open().exists()
                if monotonic() >= kill_at and ended < 0.7 * self.count and (name := self._at_work()):
                    self._kill(name, at)
                    kill_at = monotonic() + KILL_EVERY
                if monotonic() >= meddle_at:
                    self.meddler.act()
                    meddle_at = monotonic() + MEDDLE_EVERY
                if not self._set_on(at, acts_next):
                    sleep(0.08)

        for _at, who in self.to_come:  # Where the time was over before they came: they are accounted for, too.
            who.apply(now=now())

    def _let_come(self, at: datetime) -> None:
        for _ in range(AT_ONCE):
            if not self.to_come or self.to_come[0][0] > at:
                return
            self.to_come.popleft()[1].apply(now=at)

    def _set_on(self, at: datetime, acts_next: datetime | None) -> bool:
        """Let the clock run as fast as workers can follow; where nothing is to be done, set it on. Whether that was so."""
        waits = Q(state__in=[State.SCHEDULED, State.RETRYABLE])
        rows = ScheduledTask.objects.open()
        due = rows.filter(waits, scheduled_at__lte=at)
        busy = rows.exclude(waits).count() + due.count()
        self.clock.run_at(self._speed(busy, late=due | rows.filter(state=State.AVAILABLE), at=at))
        if busy:
            return False
        soonest = rows.filter(waits).aggregate(due=Min("scheduled_at"))["due"]
        comes_next = self.to_come[0][0] if self.to_come else None
        moments = [moment for moment in (soonest, acts_next, comes_next) if moment]
        if moments and min(moments) > at:
            self.clock.set(min(moments) + TOGETHER)
            return True
        return False

    def _speed(self, busy: int, *, late: QuerySet[ScheduledTask], at: datetime) -> float:
        """Seconds of a day: as fast as workers, and those who apply, can follow."""
        comes_late = bool(self.to_come) and self.to_come[0][0] < at - TOO_LATE
        if comes_late or late.filter(scheduled_at__lt=at - TOO_LATE).exists():
            return REAL
        return SLOW if busy >= A_LOT else FAST

    def _start_worker(self) -> None:
        self.started += 1
        name = f"worker-{self.started}"
        command = ("manage", "timeline_worker", "--name", name, "--threads", str(THREADS))
        self.workers[name] = start_process(self.stack, name, *command)

    def _at_work(self) -> str:
        """
        One of the workers, if it has done something since it was started. Else, where the machine is busy, each would be killed
        at its first task, and a task whose workers were all killed is given up.
        """
        name = self._chances.choice(list(self.workers))
        done = ScheduledTask.objects.filter(worker__startswith=f"{name}:", state=State.COMPLETED).count()
        return name if done >= DONE_BEFORE else ""

    def _kill(self, name: str, at: datetime) -> None:
        """Kill it, with no chance to say anything, and start another."""
        process = self.workers.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.killed += 1
        self.console.print(f"kill -9 {process.pid}  at {at:%a %H:%M}", style="red", highlight=False)
        self._start_worker()
