"""Dispatch: one poll. Begin runs by the clock, give up lost attempts, send lost messages again, stage, claim, send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from time import monotonic, sleep
from typing import Any, Final, NamedTuple, Protocol

from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.dispatch.claim import ClaimedBatch, claim, hand_back, is_anything_ready, messages_of
from timeline.dispatch.rescue import Rescued, rescue
from timeline.exceptions import BrokerUnavailable
from timeline.hooks import Poll, asked_for, hooks
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask, Wake
from timeline.store.floors import look_anew
from timeline.store.poll_queries import lower_available, probe_lost, probe_waiting
from timeline.store.site import sign_of_poller
from timeline.store.task_key_stats import lower_ready
from timeline.store.transactions import atomic
from timeline.store.transition import Write, advance, apply

ROOM_AFTER: Final = 0.02  # Seconds to wait until workers have made room; if they have not, twice as long, and so on.
MAX_PATIENCE: Final = 0.2  # Seconds.
CLAIM: Final = 0.02  # Seconds that one claim should take: meanwhile others wait for its rows, and for the processor.
AT_FIRST: Final = 100  # Tasks claimed at a time, until we know how long that takes.
LEAST: Final = 25  # To claim fewer takes almost as long.


class Staged(NamedTuple):
    """How many tasks have become available, and whether there may be available ones. ``limit`` tasks: there may be more."""

    tasks: int
    some_available: bool = True


def stage(*, limit: int = 1000, now: datetime, using: str) -> int:
    """
    Make due tasks available, the longest due first, and wake the tasks that notes name. Several processes may do so at once.
    Gives how many; ``limit`` means that there may be more.
    """
    return stage_and_tell(limit=limit, now=now, using=using).tasks


def stage_and_tell(*, limit: int, now: datetime, using: str) -> Staged:
    """Stage as ``stage`` does, and tell whether anything is available: if not, nobody needs to look for it."""
    if dialect_of(using).has_set_statements:
        # Most polls find nothing, and then need no transaction.
        found = probe_waiting(now=now, using=using)
        woken = _act_on_notes(now, using) if found.some_noted else 0
        if found.first_due is None:
            return Staged(woken, found.some_available or woken > 0)
        since, since_id = found.first_due
        staged = advance("due", Trigger.DUE, most=limit, since=since, since_id=since_id, now=now, using=using)
        lower_available(found.first_due, using=using)
        lower_ready(found.first_due, using=using)
        return Staged(woken + len(staged))
    woken = _act_on_notes(now, using) if Wake.objects.using(using).exists() else 0
    with atomic(using=using):
        tasks = list(ScheduledTask.objects.using(using).to_stage(now).locked(skip_locked=True)[:limit])
        due = apply([Write(task=task, triggers=(Trigger.DUE,)) for task in tasks], now=now, using=using)
        return Staged(woken + len(due))


def _act_on_notes(now: datetime, using: str) -> int:
    return sum(act(now=now, using=using) for act in hooks().notes)


class Sender(Protocol):
    """The way to the broker. Both calls raise ``BrokerUnavailable`` quickly, and do not try again."""

    def connect(self) -> None:
        """Check that the broker is there."""

    def send(self, batch: ClaimedBatch, *, using: str) -> None:
        """Send one message; ``using`` is the alias of the rows' database."""


class Dispatched(NamedTuple):
    """
    What a poll did, in numbers of tasks.

    Args:
        resent: Sent again with their old token.
        rescued: Attempts that were given up as lost.
        left: Whether its time was up while there was still something to do.
    """

    staged: int = 0
    sent: int = 0
    resent: int = 0
    rescued: int = 0
    left: bool = False


def dispatch(
    *,
    sender: Sender,
    limit: int = 500,
    wait: bool = False,
    whole: bool = True,
    memory: dict[str, Any] | None = None,
    now: datetime,
    using: str,
) -> Dispatched:
    """
    Send due tasks on their way. Several processes may do so at once.

    Goes on until nothing is ready, enough is on its way, or a poll interval has passed. Holds no transaction while it sends.

    Args:
        limit: How many tasks of a queue are claimed at a time at most; more, if more are declared to run together.
        wait: Whether to wait for room while enough is on its way and more is ready: for a process that does nothing else.
        whole: False for a poll before its interval is over: it only sends new tasks, and leaves lost ones to the next.
        memory: What features remember in this process from poll to poll; None: nothing.

    Raises:
        BrokerUnavailable: if the broker takes no message, if possible before anything is claimed. The next poll sends the rest.
        NotRunHere: if the database is another site's, or its connection has autocommit off. Then nothing is changed.
    """
    poll = begin_poll(lambda: now, memory, using=using) if whole else None
    begun = monotonic()
    give_up = begun + get_settings().POLL_INTERVAL.total_seconds()
    sender.connect()
    found = probe_lost(using=using)
    lost = rescue(now=now, using=using) if whole and found.is_lost else Rescued([], [], [])
    if lost.resend:
        _send(messages_of(lost.resend), sender, using)
    staged = sent = 0
    patience, most = ROOM_AFTER, min(AT_FIRST, limit)
    while True:
        last_staged, some_available = stage_and_tell(limit=2 * limit, now=now, using=using)
        staged += last_staged
        batches, most = _claim(most, limit, found.leases_valid_at, now, using) if some_available else ([], most)
        claimed = sum(len(batch.task_ids) for batch in batches)
        _send(batches, sender, using)
        sent += claimed
        acted = long_work(poll) if poll is not None and not claimed else 0
        busy = claimed or acted or (wait and some_available and _is_more_ready(using))
        if not busy or monotonic() > give_up:
            if whole and not (busy or some_available):
                look_anew(using=using)
            done = Dispatched(staged, sent, len(lost.resend), len(lost.retried) + len(lost.discarded), bool(busy))
            tell_poll(begun, done)
            return done
        if claimed or acted:
            patience = ROOM_AFTER
        elif last_staged < 2 * limit:
            sleep(patience)
            patience = min(2 * patience, MAX_PATIENCE)


def tell_poll(begun: float, done: Dispatched) -> None:
    """Tell those who look on what a poll did that began at this ``monotonic()`` time, if it did anything."""
    for tell in hooks().polled if any(done[:-1]) else ():
        tell(monotonic() - begun, {name: count for name, count in done._asdict().items() if name != "left"})


def _claim(
    most: int, limit: int, leases_valid_at: datetime | None, now: datetime, using: str
) -> tuple[list[ClaimedBatch], int]:
    """Claim at most so many tasks; those that have a limit last. Gives how many to claim next, too."""
    begun = monotonic()
    batches = claim(limit=most, leases_valid_at=leases_valid_at, now=now, using=using)
    if claimed := sum(len(batch.task_ids) for batch in batches):
        most = _paced(claimed, monotonic() - begun, limit)
    for source in hooks().sources:
        batches += source.claim(limit=most, now=now, using=using)
    return batches, most


def _is_more_ready(using: str) -> bool:
    """Whether there is more that could be sent, if there were room."""
    return is_anything_ready(using=using) or any(source.is_any_ready(using=using) for source in hooks().sources)


def begin_poll(clock: Callable[[], datetime], memory: dict[str, Any] | None, *, using: str) -> Poll:
    """Check the site of the database, and do what features do in each poll."""
    poll = Poll(clock, using, sign_of_poller(using=using), {} if memory is None else memory)
    for chore in asked_for(hooks().chores, [poll]):
        chore(poll)
    long_work(poll)
    return poll


def long_work(poll: Poll) -> int:
    """Go on with work that many polls share; gives how many rows changed."""
    return sum(work(poll) for work in asked_for(hooks().long_work, [poll]))


def _paced(claimed: int, seconds: float, limit: int) -> int:
    """How many tasks to claim next."""
    return min(limit, max(LEAST, int(claimed * CLAIM / max(seconds, 1e-6))))


def _send(batches: Sequence[ClaimedBatch], sender: Sender, using: str) -> None:
    for position, batch in enumerate(batches):
        try:
            sender.send(batch, using=using)
        except BrokerUnavailable:
            hand_back(batches[position:], using=using)
            raise
