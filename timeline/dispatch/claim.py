"""Claim: take available tasks to send them through a broker, in batches of one task key."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil
from random import sample
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.lifecycle import Trigger
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.store.poll_queries import polling
from timeline.store.returned_rows import RawRow
from timeline.store.task_key_stats import Kind, look_at_kinds, ready_kinds
from timeline.store.transactions import atomic
from timeline.store.transition import Write, advance, apply

MESSAGE: Final = 0.2  # Seconds of work in one message.
LARGEST: Final = 250  # Tasks in one message.

FEW: Final = 4  # Messages of a queue that wait for a worker at a time: busy workers go on by themselves.
MANY: Final = 16  # While no message waits: then workers seem to have nothing to do.


class Share(NamedTuple):
    """How much to take of one kind and priority, from the first known task on. ``parts``: see ``advance``."""

    task_key: str
    priority: int
    size: int
    since: datetime | None = None
    since_id: UUID | None = None
    parts: frozenset[str] = frozenset()


def shares(ready: Mapping[str, int], queues: Mapping[str, str], room: Mapping[str, int], *, most: int) -> list[Share]:
    """
    Divide the room queue by queue, so that none waits for another. In each, only the most urgent kinds get a share, in equal
    parts, so that no kind waits behind another.

    Args:
        ready: Kind → priority (smaller is more urgent). Without room for all, the first kinds are taken.
        queues: Kind → its queue.
        room: Queue → how many more tasks it takes; a queue that is not in it takes ``most``.
    """
    by_queue: dict[str, list[str]] = defaultdict(list)
    for task_key in ready:
        by_queue[queues[task_key]].append(task_key)
    taken = []
    for queue, task_keys in by_queue.items():
        size = min(room.get(queue, most), most)
        first = min(ready[task_key] for task_key in task_keys)
        urgent = [task_key for task_key in task_keys if ready[task_key] == first][: max(size, 0)]
        taken += [Share(task_key, first, size // len(urgent)) for task_key in urgent]
    return taken


def batch_size(declared: int | None, seconds: float | None) -> int:
    """Tasks of a kind in one message: as declared, or about 0.2 s of work; one, if ``seconds`` for a task is not known."""
    if declared is not None:
        return declared
    if seconds is None:
        return 1
    return int(max(1, min(MESSAGE / max(seconds, 1e-6), LARGEST)))


class _OnTheWay(NamedTuple):
    """
    Tasks of a queue that are claimed and not started; of ``messages``, only those sent within two polls. An older message may
    be stuck with a busy worker.
    """

    tasks: int = 0
    messages: int = 0

    @property
    def room(self) -> int:
        """How many more tasks this queue may have: 0 below a quarter of the limit, as messages would be too small."""
        most = get_settings().MAX_PENDING
        free = most - self.tasks
        return free if free >= most / 4 else 0

    @property
    def wanted(self) -> int:
        """How many more messages this queue may have."""
        return max(FEW - self.messages, 0) if self.tasks else MANY


def apportion(
    *, most: int, leases_valid_at: datetime | None = None, now: datetime | None = None, using: str
) -> tuple[list[Share], dict[str, int]]:
    """
    Share the free room among the kinds that have ready tasks, for each queue ``most`` tasks or one whole message. Gives what
    to claim, and task key → how many of its tasks one message carries.
    """
    first = ready_kinds(registry.task_keys(), now=now, using=using)
    if not first:
        return [], {}
    lately = get_settings().overdue_after
    kinds = look_at_kinds(registry.task_keys(), lately=lately, leases_valid_at=leases_valid_at, using=using)
    declared = {task_key: registry.task(task_key)[1] for task_key in kinds}
    sizes = {task_key: batch_size(declared[task_key].at_once, kind.seconds) for task_key, kind in kinds.items()}
    queues = {task_key: task.options.queue for task_key, task in declared.items()}
    # In random order, so that if there is room for only a few kinds, these are not always the same.
    ready = {task_key: first[task_key].priority for task_key in sample(list(first), len(first))}
    there = _by_queue(kinds, queues, sizes)
    left = {queue: found.room for queue, found in there.items()}
    taken = shares(ready, queues, left, most=most)
    several = Counter(queues[share.task_key] for share in taken)
    claimed = []
    for share in taken:
        queue = queues[share.task_key]
        message = sizes[share.task_key]
        # Tasks that are declared to run together go together: a smaller message takes as much time.
        whole = declared[share.task_key].at_once is not None
        asked = max(share.size // message, 1) * message if whole else share.size
        fitting = ceil(there[queue].wanted / several[queue]) * message
        if size := min(asked, fitting, left[queue]):
            left[queue] -= size
            there_first = first[share.task_key]
            since, since_id = there_first.place
            claimed.append(share._replace(size=size, since=since, since_id=since_id, parts=there_first.parts))
    return claimed, sizes


def _by_queue(kinds: Mapping[str, Kind], queues: Mapping[str, str], sizes: Mapping[str, int]) -> dict[str, _OnTheWay]:
    """Count the tasks and messages of each queue."""
    found = dict.fromkeys(queues.values(), _OnTheWay())
    for task_key, kind in kinds.items():
        queue = found[queues[task_key]]
        messages = ceil(kind.lately / sizes[task_key])
        found[queues[task_key]] = _OnTheWay(queue.tasks + kind.tasks, queue.messages + messages)
    return found


class ClaimedBatch(NamedTuple):
    """Claimed tasks of one key and queue: the content of a message. Only a message with the claim's token starts them."""

    task_key: str
    queue: str
    token: UUID
    task_ids: list[UUID]


def claim(
    *, limit: int = 100, leases_valid_at: datetime | None = None, now: datetime, using: str
) -> list[ClaimedBatch]:
    """
    Claim available tasks that this process has handlers for. Several processes may do so at once.

    In each queue the most urgent tasks are taken, in equal parts among kinds. At most ``TIMELINE["MAX_PENDING"]`` tasks of a
    queue are on their way at a time (a little more, if several pollers look at the same moment). ``limit`` is for each queue.
    ``leases_valid_at`` is machine time at which no lease had run out: index entries of tasks that have left are not read.

    Returns:
        Batches in the order in which they should be sent.
    """
    taken, sizes = apportion(most=limit, leases_valid_at=leases_valid_at, now=now, using=using)
    if not taken:
        return []
    token, lease = uuid4(), get_settings().resend_after
    if dialect_of(using).has_set_statements:
        rows = advance(
            "shares",
            Trigger.CLAIM,
            lease=lease,
            claim_token=token,
            task_keys=[share.task_key for share in taken],
            priorities=[share.priority for share in taken],
            sizes=[share.size for share in taken],
            since=[share.since for share in taken],
            since_ids=[share.since_id for share in taken],
            parts=taken[0].parts,
            now=now,
            using=using,
        )
    else:
        with atomic(using=using):
            tasks = [task for share in taken for task in _of(share, using)]
            writes = [Write(task=task, triggers=(Trigger.CLAIM,), claim_token=token, lease=lease) for task in tasks]
            rows = [task.__dict__ for task in apply(writes, now=now, using=using)]
    return list(_batches(rows, token, sizes))


def _of(share: Share, using: str) -> list[ScheduledTask]:
    ready = ScheduledTask.objects.using(using).ready().free().filter(task_key=share.task_key, priority=share.priority)
    return list(ready.with_parts(share.parts)[: share.size])


def is_anything_ready(*, using: str) -> bool:
    """Whether there are available tasks that this process has handlers for."""
    return bool(ready_kinds(registry.task_keys(), using=using))


def hand_back(batches: Sequence[ClaimedBatch], *, using: str) -> int:
    """
    Let the next poll send batches again that could not be sent, or whose worker stops. Gives how many were still claimed. This
    is no transition and makes no log entry. The messages do not count as lost: they are sent as if for the first time.
    """
    pending = (
        ScheduledTask.objects.using(using)
        .on_their_way()
        .filter(
            pk__in=[task_id for batch in batches for task_id in batch.task_ids],
            claim_token__in=[batch.token for batch in batches],
        )
    )
    if not batches:
        return 0
    with polling(using):  # In the lock order; locked rows are skipped: their owner starts or ends them.
        held = [task.pk for task in pending.by_id().only("pk").locked(skip_locked=True)]
        return pending.filter(pk__in=held).update(
            lease_expires_at=MachineTime(timedelta(milliseconds=-1)), sent_at=None
        )


def find_delayed(task_keys: Sequence[str], *, using: str) -> ClaimedBatch | None:
    """
    A message of claimed tasks that nobody has started for two polls: it waits for a busy worker, or got lost. It is chosen at
    random, so that not all processes find the same one. Tasks that were handed back are left for the next poll.
    """
    tasks = ScheduledTask.objects.using(using).waiting_since(get_settings().overdue_after)
    waiting = tasks.with_handler(task_keys)
    messages = messages_of(waiting[:LARGEST])
    return sample(messages, 1)[0] if messages else None


def messages_of(tasks: Iterable[ScheduledTask]) -> list[ClaimedBatch]:
    """The messages that carry these claimed tasks: each with its tasks that were given, in the given order."""
    carried: dict[tuple[str, str, UUID], list[UUID]] = defaultdict(list)
    for task in tasks:
        if task.claim_token is not None:
            carried[task.task_key, task.queue, task.claim_token].append(task.pk)
    return [ClaimedBatch(*kind, task_ids) for kind, task_ids in carried.items()]


def _batches(rows: Sequence[RawRow], token: UUID, sizes: Mapping[str, int]) -> Iterator[ClaimedBatch]:
    kinds: dict[tuple[str, str], list[UUID]] = defaultdict(list)
    for row in rows:
        kinds[row["task_key"], row["queue"]].append(row["id"])
    for (task_key, queue), task_ids in kinds.items():
        for start in range(0, len(task_ids), sizes[task_key]):
            yield ClaimedBatch(task_key, queue, token, task_ids[start : start + sizes[task_key]])
