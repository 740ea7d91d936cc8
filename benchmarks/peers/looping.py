"""What adapters of asynchronous peers share: an event loop that stays, and the jobs on connections of a pool."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine
from typing import Any

from psycopg_pool import AsyncConnectionPool

from benchmarks.peers.jobs import BRIEF, COUNT, LONG, PICKED_UP, entity_of

_pools: dict[str, AsyncConnectionPool] = {}


class Loop:
    """Runs coroutines from code that waits for them, always on the same loop."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def __call__(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run it."""
        return self._runner.run(coroutine)

    def close(self) -> None:
        """End the loop."""
        self._runner.close()


async def write(statement: str, parameters: list[object]) -> None:
    """Write as a host's handler does: on a connection of the host's own pool, committed at once."""
    if not _pools:
        pool = AsyncConnectionPool(
            os.environ["BENCHMARK_DATABASE_URL"], min_size=4, max_size=10, open=False, kwargs={"autocommit": True}
        )
        _pools["jobs"] = pool
        await pool.open()
    async with _pools["jobs"].connection() as connection:
        await connection.execute(statement, parameters)


async def nothing(number: int) -> None:
    """Do nothing."""


async def count(number: int) -> None:
    """Count the entity up."""
    await write(COUNT, [entity_of(number)])


async def brief(number: int) -> None:
    """Wait for something near."""
    await asyncio.sleep(BRIEF)


async def long(number: int) -> None:
    """Wait for something far."""
    await asyncio.sleep(LONG)


async def pick_up(number: int, sent: float) -> None:
    """Tell how long it was from the call that scheduled it until now."""
    waited = time.time() - sent
    await write(PICKED_UP, [number, waited])
