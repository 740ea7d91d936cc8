"""Send: claim what is due, let the other thread post it, write what came of it; and again, until told to stop."""

from __future__ import annotations

import logging
import queue
import threading
from contextlib import suppress
from datetime import datetime
from time import monotonic
from typing import Final
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections
from standardwebhooks import Webhook

from timeline.clocks import SteadyClock
from timeline.conf import get_settings as timeline_settings
from timeline.store.isolating import atomic
from timeline.webhooks.claiming import claim, let_go, release
from timeline.webhooks.conf import get_settings
from timeline.webhooks.locking import lock_endpoints
from timeline.webhooks.models import MAX_ERROR, Code, Delivery, Endpoint, State
from timeline.webhooks.posting import Answer, Message
from timeline.webhooks.pruning import prune_deliveries
from timeline.webhooks.recording import Outcome, record
from timeline.webhooks.secrets import decrypted
from timeline.webhooks.signing_on import SIGN_EVERY, give_sign, take_leave
from timeline.webhooks.threads import Done, Job, Poster
from timeline.worker.names import worker_name

logger = logging.getLogger("timeline.webhooks")

LOOK_EVERY: Final = 0.2  # Seconds between two looks at the database while nothing is due.
GATHERED_FOR: Final = 0.01  # Seconds in which outcomes are gathered that are written together.
AHEAD: Final = 6  # So many times as many are claimed of an endpoint as are under way: a claim costs a transaction.
OF_SUSPECT: Final = 2  # So many of one that failed last.
EXPIRE_EVERY: Final = 30.0
REST: Final = 1.0  # Seconds until a database that failed is asked again.


class Sender:
    """
    Sends the deliveries of a database. Any number of processes may.

    Args:
        using: Database alias.
    """

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
                    self.step(poster)
                except (DatabaseError, InterfaceError) as error:
                    logger.warning("The database failed; trying again: %s", error)
                    connections[self.using].close()
                    self._stop.wait(REST)
        self._write(_drained(poster))
        take_leave(self.name, using=self.using)

    def drain(self) -> int:
        """
        Send what is due now, and wait for it.

        Returns:
            How many attempts that were.
        """
        before = self.sent
        with Poster() as poster:
            self._next_look = 0.0
            while self.step(poster) or sum(poster.in_hand.values()):
                self._next_look = 0.0 if not sum(poster.in_hand.values()) else self._next_look
        return self.sent - before

    def step(self, poster: Poster) -> int:
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
                poster.done.put(Done(delivery, Answer(None, "", str(error)[:MAX_ERROR], now, 0)))
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
    """
    Make the message of a delivery. What signs is kept with the endpoint it was read with.

    Raises:
        ImproperlyConfigured: if no key opens the secret.
    """
    return Message(delivery.message_id, delivery.endpoint.url, delivery.body, signers_of(delivery.endpoint, now))


def signers_of(endpoint: Endpoint, now: datetime) -> tuple[Webhook, ...]:
    """What signs for an endpoint: its secret, and the one before for a day."""
    known: tuple[Webhook, ...] | None = endpoint.__dict__.get("_signers")
    if known is None:
        stored = [endpoint.secret, *([endpoint.previous_secret] if endpoint.has_two_secrets(now) else [])]
        known = endpoint.__dict__["_signers"] = tuple(Webhook(decrypted(secret)) for secret in stored)
    return known
