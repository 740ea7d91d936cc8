"""Send: claim what is due, let the other thread post it, write what came of it; and again, until told to stop."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError
from standardwebhooks import Webhook

from timeline.clocks import SteadyClock
from timeline.conf import get_settings as timeline_settings
from timeline.hooks import hooks
from timeline.ids import uuid7
from timeline.store.database_errors import drop
from timeline.store.transactions import atomic
from timeline.webhooks.conf import get_settings
from timeline.webhooks.connect import make_pool
from timeline.webhooks.delivery_rows import Outcome, claim, let_go, record, release
from timeline.webhooks.disabling import lock_endpoints
from timeline.webhooks.facts import as_body
from timeline.webhooks.models import MAX_ERROR, Code, Delivery, Endpoint, State, message_id
from timeline.webhooks.post import Message, PostOutcome, post
from timeline.webhooks.retry import PAUSED_AFTER
from timeline.webhooks.secrets import decrypted
from timeline.webhooks.upkeep import SIGN_EVERY, give_sign, prune_deliveries, take_leave
from timeline.worker.process import worker_name

# Seconds after its claim when a delivery is given back rather than begun: its lease may run out under way.
OLD: Final = 30.0
ASKED_TO_WAIT: Final = 1_000_000  # Stands for more failures than there can be: nothing more of the claim is sent there.
SUSPECT: Final = 4  # Of so many deliveries under way, one at most is to an endpoint that failed last.

logger = logging.getLogger("timeline.webhooks")
LOOK_EVERY: Final = 0.2  # Seconds between two looks at the database while nothing is due.
GATHERED_FOR: Final = 0.01  # Seconds in which outcomes are gathered that are written together.
AHEAD: Final = 6  # So many times as many are claimed of an endpoint as are under way: a claim costs a transaction.
OF_SUSPECT: Final = 2  # So many of one that failed last.
EXPIRE_EVERY: Final = 30.0
REST: Final = 1.0  # Seconds until a database that failed is asked again.


@dataclass(frozen=True, slots=True)
class Job:
    """A delivery that was claimed, and its message."""

    delivery: Delivery
    message: Message


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one. ``answer`` is None: it was not sent, and is given back."""

    delivery: Delivery
    answer: PostOutcome | None


class Poster:
    """
    Posts in a thread of its own; what came of it is in ``done``.

    What is of the same order goes one after the other; once one failed, the rest is given back. Endpoints that failed last have
    few places of their own: a receiver that hangs holds up no other.
    """

    def __init__(self) -> None:
        self.done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self.in_hand: Counter[UUID] = (
            Counter()
        )  # Of each endpoint: claimed, and not in ``done`` yet. Changed by the caller.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="timeline-webhooks", daemon=True)
        self._chains: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._open()).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, coroutine: object) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)  # type: ignore[arg-type]

    async def _open(self) -> None:
        given = get_settings()
        self._loop.set_default_executor(ThreadPoolExecutor(given.CONCURRENCY, "timeline-webhooks-names"))
        self._pool = make_pool()
        suspects = max(1, given.CONCURRENCY // SUSPECT)
        self._places = asyncio.Semaphore(max(1, given.CONCURRENCY - suspects))
        self._places_of_suspects = asyncio.Semaphore(suspects)
        self._each: defaultdict[UUID, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(given.PER_ENDPOINT))

    async def _close(self) -> None:
        for chain in list(self._chains):
            chain.cancel()
        await asyncio.gather(*self._chains, return_exceptions=True)
        await self._pool.aclose()

    def post(self, jobs: Sequence[Job]) -> None:
        """Begin to post what was claimed together, in order."""
        chains: defaultdict[tuple[UUID, str], list[Job]] = defaultdict(list)
        for job in jobs:
            self.in_hand[job.delivery.endpoint_id] += 1
            chains[job.delivery.endpoint_id, job.delivery.order_key].append(job)
        self._loop.call_soon_threadsafe(self._begin, list(chains.values()), monotonic())

    def _begin(self, chains: Iterable[Sequence[Job]], claimed: float) -> None:
        failures = Counter[UUID]()  # Since they were claimed: whether an endpoint fails, a later claim knows itself.
        for chain in chains:
            task = self._loop.create_task(self._post_all(chain, claimed, failures))
            self._chains.add(task)
            task.add_done_callback(self._chains.discard)

    async def _post_all(self, chain: Sequence[Job], claimed: float, failures: Counter[UUID]) -> None:
        left = list(chain)
        try:
            while left:
                answer = await self._post_one(left[0], claimed, failures)
                if answer is None:
                    return
                self.done.put(Done(left.pop(0).delivery, answer))
                if not answer.is_delivered:
                    return
        finally:
            for job in left:
                self.done.put(Done(job.delivery, None))

    async def _post_one(self, job: Job, claimed: float, failures: Counter[UUID]) -> PostOutcome | None:
        endpoint: Endpoint = job.delivery.endpoint
        is_suspect = bool(job.delivery.attempts or endpoint.failures)
        async with self._each[endpoint.pk], self._places_of_suspects if is_suspect else self._places:
            most = ASKED_TO_WAIT if is_suspect else PAUSED_AFTER
            if monotonic() - claimed > OLD or failures[endpoint.pk] >= most:
                return None
            answer = await post(job.message, self._pool)
        if answer.wait:
            failures[endpoint.pk] = ASKED_TO_WAIT
        elif failures[endpoint.pk] < ASKED_TO_WAIT:
            failures[endpoint.pk] = 0 if answer.is_delivered else failures[endpoint.pk] + 1
        return answer


class WebhookSender:
    """Sends the deliveries of a database. Any number of processes may."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.sent = 0
        self.name = worker_name()
        self._clock = SteadyClock(using)
        self._stop = threading.Event()
        self._next_look = self._next_expiry = self._next_sign = 0.0
        self._held_up: set[tuple[UUID, str]] = set()

    def stop(self) -> None:
        """Claim nothing more, and return from ``work`` soon. What is under way is given back. Safe in a signal handler."""
        self._stop.set()

    def work(self) -> None:
        """Send until told to stop. A database that does not answer is asked again."""
        with Poster() as poster:
            while not self._stop.is_set():
                try:
                    self.turn(poster)
                except (DatabaseError, InterfaceError) as error:
                    logger.warning("The database failed; trying again: %s", error)
                    drop(self.using)
                    self._stop.wait(REST)
        self._write(_drained(poster))
        take_leave(self.name, using=self.using)

    def drain(self) -> int:
        """Send what is due now, and wait for it; how many attempts that were."""
        before = self.sent
        with Poster() as poster:
            self._next_look = 0.0
            while self.turn(poster) or sum(poster.in_hand.values()):
                self._next_look = 0.0 if not sum(poster.in_hand.values()) else self._next_look
        return self.sent - before

    def turn(self, poster: Poster) -> int:
        """Write what has come back, and claim more if it is time for it; say how many were claimed."""
        self._write(self._gather(poster), poster)
        if monotonic() < self._next_look:
            return 0
        now = self._clock()
        self._give_sign()
        self._expire(now)
        claimed = claim(lambda endpoint: _room(endpoint, poster), now=now, using=self.using)
        jobs = []
        for delivery in claimed.deliveries:
            delivery.token = claimed.token
            try:
                jobs.append(Job(delivery, message_of(delivery, now)))
            except ImproperlyConfigured as error:  # Of one endpoint: the others are sent to.
                poster.in_hand[delivery.endpoint_id] += 1
                poster.done.put(Done(delivery, PostOutcome(None, "", str(error)[:MAX_ERROR], now, 0)))
        poster.post(jobs)
        self._held_up |= claimed.held_up
        self._next_look = monotonic() + (0 if jobs or claimed.held_up else LOOK_EVERY)
        return len(jobs)

    def _gather(self, poster: Poster) -> list[Done]:
        """What has come back: waits for the first, if nothing can be claimed before, and a moment for others."""
        done: list[Done] = []
        with suppress(queue.Empty):
            wait = min(max(self._next_look - monotonic(), 0.0), LOOK_EVERY)
            if sum(poster.in_hand.values()) or wait:
                done.append(poster.done.get(timeout=wait or GATHERED_FOR))
            until = monotonic() + GATHERED_FOR
            while done:
                done.append(poster.done.get(timeout=max(until - monotonic(), 0.0001)))
        return done

    def _write(self, done: list[Done], poster: Poster | None = None) -> None:
        if not done:
            return
        if poster is not None:  # Before they are written: if the database fails, their leases run out.
            poster.in_hand.subtract(one.delivery.endpoint_id for one in done)
        outcomes = [Outcome(one.delivery, one.answer) for one in done if one.answer is not None]
        unsent = [one.delivery for one in done if one.answer is None]
        arrived = {(one.delivery.endpoint_id, one.delivery.order_key) for one in outcomes if one.answer.is_delivered}
        behind, now = arrived & self._held_up, self._clock()
        with atomic(using=self.using):
            endpoints = lock_endpoints({one.delivery.endpoint_id for one in done}, using=self.using)
            record(outcomes, endpoints, now=now, using=self.using)
            let_go(behind, now=now, using=self.using)
            for token in {delivery.token for delivery in unsent}:
                release([one.pk for one in unsent if one.token == token], token, using=self.using)
        for tell in hooks().posted if outcomes else ():
            tell([(outcome.delivery, outcome.answer) for outcome in outcomes], using=self.using)
        self._held_up -= behind
        self.sent += len(outcomes)
        self._next_look = 0.0

    def _give_sign(self) -> None:
        if monotonic() >= self._next_sign:
            self._next_sign = monotonic() + SIGN_EVERY
            give_sign(self.name, using=self.using)

    def _expire(self, now: datetime) -> None:
        """Give up, from time to time, what was tried and has waited for three days; what was not is tried once."""
        if monotonic() < self._next_expiry:
            return
        self._next_expiry = monotonic() + EXPIRE_EVERY
        with atomic(using=self.using):
            waiting = Delivery.objects.using(self.using).waiting()
            late = waiting.filter(give_up_at__lte=now, leased_until=None, attempts__gt=0).locked()
            waiting.filter(pk__in=late.values("pk")).update(state=State.FAILED, code=Code.LATE, ended_at=now)
        _prune(now, self.using)


def _prune(now: datetime, using: str) -> None:
    retention = timeline_settings().RETENTION
    if retention is not None:
        prune_deliveries(ended_before=now - retention, using=using)


def _drained(poster: Poster) -> list[Done]:
    done = []
    with suppress(queue.Empty):
        while True:
            done.append(poster.done.get_nowait())
    return done


def _room(endpoint: Endpoint, poster: Poster) -> int:
    """How many more of an endpoint may be in hand here."""
    most = OF_SUSPECT if endpoint.failures else AHEAD * get_settings().PER_ENDPOINT
    return most - poster.in_hand[endpoint.pk]


def message_of(delivery: Delivery, now: datetime) -> Message:
    """The message of a delivery, and what signs it; ``ImproperlyConfigured`` if no key opens the secret."""
    return Message(delivery.message_id, delivery.endpoint.url, delivery.body, signers_of(delivery.endpoint, now))


def signers_of(endpoint: Endpoint, now: datetime) -> tuple[Webhook, ...]:
    """What signs for an endpoint: its secret, and the one before for a day."""
    known: tuple[Webhook, ...] | None = endpoint.__dict__.get("_signers")
    if known is None:
        stored = [endpoint.secret, *([endpoint.previous_secret] if endpoint.has_two_secrets(now) else [])]
        known = endpoint.__dict__["_signers"] = tuple(Webhook(decrypted(secret)) for secret in stored)
    return known


def send_sample(endpoint: Endpoint, *, now: datetime) -> PostOutcome:
    """Send a sample, disabled endpoint or not, and wait; ``ImproperlyConfigured`` if no key opens the secret."""
    body = as_body("webhook.test", now, {"endpoint": str(endpoint.pk)})
    message = Message(message_id(endpoint.pk, uuid7()), endpoint.url, body, signers_of(endpoint, now))
    return asyncio.run(_once(message))


async def _once(message: Message) -> PostOutcome:
    async with make_pool() as pool:
        return await post(message, pool)
