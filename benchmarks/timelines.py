"""What the benchmarks let run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from time import perf_counter

from django.db import connections
from django.db.models import F

from benchmarks.models import Member
from benchmarks.peers import jobs
from project.accounts.models import User
from timeline import Timeline, after, step, task


def seconds_of(job: Callable[[int], None], user: User) -> float:
    """Do it, and tell how long it took."""
    started = perf_counter()
    job(user.pk)
    return perf_counter() - started


class Nothing(Timeline):
    """Does nothing, or nothing but wait, so that what is measured is what we do around it."""

    entity = "accounts.User"

    @task(atomic=False)
    def plain(self, user: User) -> None:
        """Hold no transaction."""

    @task()
    def in_transaction(self, user: User) -> None:
        """Share a transaction with the outcome."""

    @task(atomic=False)
    def brief(self, user: User) -> float:
        """Wait for something near, and let nothing else run meanwhile; tell how long it took."""
        return seconds_of(jobs.brief, user)

    @task(atomic=False)
    def long(self, user: User) -> float:
        """Wait for something far, and let nothing else run meanwhile; tell how long it took."""
        return seconds_of(jobs.long, user)


class Work(Timeline):
    """The jobs that all peers are given."""

    entity = "accounts.User"

    @task(atomic=False)
    def nothing(self, user: User) -> None:
        """Do nothing."""

    @task()
    def count(self, user: User) -> None:
        """Count the entity up, in the transaction that records the outcome."""
        with connections[self.task._state.db or "default"].cursor() as cursor:
            cursor.execute(jobs.COUNT, [user.pk])

    @task(atomic="shared")
    def shared(self, user: User) -> None:
        """Count the entity up, in the transaction that records the outcome, and those of others."""
        with connections[self.task._state.db or "default"].cursor() as cursor:
            cursor.execute(jobs.COUNT, [user.pk])

    @task(bulk=1000)
    def many(self, users: list[User]) -> None:
        """Count entities up, all in one statement and the transaction that records the outcomes."""
        with connections[users[0]._state.db or "default"].cursor() as cursor:
            cursor.execute(jobs.COUNT_MANY, [[user.pk for user in users]])

    @task(atomic=False)
    async def brief(self, user: User) -> None:
        """Wait for something near."""
        await asyncio.sleep(jobs.BRIEF)

    @task(atomic=False)
    async def long(self, user: User) -> None:
        """Wait for something far."""
        await asyncio.sleep(jobs.LONG)

    @task(atomic=False)
    def pick_up(self, user: User) -> None:
        """Tell how long it waited."""
        jobs.pick_up(**self.task.payload)


class Membership(Timeline):
    """The job that most people write: as ``@task()`` is where nothing else is said, with the ORM."""

    entity = "benchmarks.Member"

    @task()
    def count(self, member: Member) -> None:
        """Count the entity up, in the transaction that records the outcome."""
        Member.objects.filter(pk=member.pk).update(counter=F("counter") + 1)


class Stepping(Timeline):
    """Tasks of four steps each, one after the other."""

    entity = "benchmarks.Member"

    @task(atomic=False)
    def steps(self, member: Member) -> None:
        """Call the outside."""
        for number in range(jobs.STEPS):
            self.plain.keyed(str(number))(number)

    @task(atomic=False)
    def step_updates(self, member: Member) -> None:
        """Write here: in each step once."""
        for number in range(jobs.STEPS):
            self.update.keyed(str(number))(member.pk)

    @task(atomic=False)
    async def steps_async(self, member: Member) -> None:
        """Call the outside, beside other tasks."""
        for number in range(jobs.STEPS):
            await self.outside.keyed(str(number))(number)

    @task(atomic=False)
    def steps_killed(self, member: Member) -> None:
        """Tell when each step is entered; the first attempt hangs in the third, until somebody kills it."""
        for number in range(jobs.STEPS):
            self.noted.keyed(str(number))(number, self.task.attempt)

    @step(atomic=False)
    def noted(self, number: int, attempt: int) -> None:
        """Tell when it is entered."""
        jobs.connection().execute(jobs.ENTERED, [number, time.time()])
        if (number, attempt) == (jobs.HANGS, 1):
            time.sleep(jobs.HANGING)

    @step(atomic=False)
    def plain(self, number: int) -> dict[str, object]:
        """Give something."""
        return jobs.done(number)

    @step
    def update(self, key: int) -> dict[str, object]:
        """Count the member up, in the transaction that records the step."""
        with connections[self.task._state.db or "default"].cursor() as cursor:
            cursor.execute(jobs.COUNT_MEMBER, [key])
        return jobs.done(key)

    @step(atomic=False)
    async def outside(self, number: int) -> dict[str, object]:
        """Give something."""
        return jobs.done(number)


class Enrolled(Timeline):
    """Three tasks a user, all much later."""

    entity = "accounts.User"
    starts_on = "user.enrolled"

    @task(after(days=30), atomic=False)
    def first(self, user: User) -> None:
        """Do nothing."""

    @task(after(days=31), atomic=False)
    def second(self, user: User) -> None:
        """Do nothing."""

    @task(after(days=32), atomic=False)
    def third(self, user: User) -> None:
        """Do nothing."""
