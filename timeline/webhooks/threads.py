"""The thread that posts: an event loop of its own, with as many deliveries under way as there is room for."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from timeline.webhooks.conf import get_settings
from timeline.webhooks.connecting import make_pool
from timeline.webhooks.models import Delivery, Endpoint
from timeline.webhooks.pacing import PAUSED_AFTER
from timeline.webhooks.posting import Answer, Message, post

OLD: Final = (
    30.0  # Seconds after its claim when a delivery is given back rather than begun: its lease may run out under way.
)
SUSPECT: Final = 4  # Of so many deliveries under way, one at most is to an endpoint that failed last.


@dataclass(frozen=True, slots=True)
class Job:
    """A delivery that was claimed, and its message."""

    delivery: Delivery
    message: Message


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one. ``answer`` is None: it was not sent, and is given back."""

    delivery: Delivery
    answer: Answer | None


class Poster:
    """
    Posts in a thread of its own; what came of it is in ``done``.

    What is about the same order of an endpoint is posted one after the other, and once one failed, the rest is given back.
    Endpoints that failed last have few places, of their own: a receiver that hangs holds up no other.
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

    async def _post_one(self, job: Job, claimed: float, failures: Counter[UUID]) -> Answer | None:
        endpoint: Endpoint = job.delivery.endpoint
        is_suspect = bool(job.delivery.attempts or endpoint.failures)
        async with self._each[endpoint.pk], self._places_of_suspects if is_suspect else self._places:
            if monotonic() - claimed > OLD or (not is_suspect and failures[endpoint.pk] >= PAUSED_AFTER):
                return None
            answer = await post(job.message, self._pool)
        failures[endpoint.pk] = 0 if answer.is_delivered else failures[endpoint.pk] + 1
        return answer
