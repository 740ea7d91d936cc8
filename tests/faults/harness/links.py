"""
Links: ports of loopback that hand bytes on to a server, and that can be delayed, silenced, reset, and cut at a COMMIT.

All links of a process live on one thread, in one event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic

from tests.faults.harness.frontend import Frontend

Target = tuple[str, int] | str  # Host and port, or the path of a socket.
PIECE = 65536
PATIENCE = 2.0  # Seconds that a commit may take whose answer is cut.


class Links:
    """The thread on which links live, within a ``with`` block."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._links: list[Link] = []

    def __enter__(self) -> Links:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        """Let go of everything that is open."""
        for link in self._links:
            link.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def open(self, target: Target, *, commits: bool = False) -> Link:
        """
        Open a link.

        Args:
            target: Where it leads.
            commits: Whether it is to understand PostgreSQL's clients.
        """
        link = Link(target, self._loop, commits=commits)
        self._links.append(link)
        asyncio.run_coroutine_threadsafe(link.serve(), self._loop).result(10)
        return link


class Link:
    """One link. Its verbs may be called from any thread."""

    def __init__(self, target: Target, loop: asyncio.AbstractEventLoop, *, commits: bool) -> None:
        self.port = 0
        self.cut = 0  # Commits whose answer was cut.
        self._target = target
        self._loop = loop
        self._understands = commits
        self._to_cut = 0
        self._delay = (0.0, 0.0)  # Seconds, until when.
        self._silent_until = 0.0
        self._open: set[asyncio.StreamWriter] = set()
        self._door: asyncio.Server | None = None

    def cut_commits(self, count: int) -> None:
        """Let the server do the next so many commits, and drop the connection before the answer comes back."""
        self._to_cut = count

    def delay(self, seconds: float, lasting: float) -> None:
        """Hand everything on so much later, for a while."""
        self._delay = seconds, monotonic() + lasting

    def silence(self, lasting: float) -> None:
        """Swallow everything for a while, without a word, and then reset what was open."""
        self._silent_until = monotonic() + lasting
        self._loop.call_soon_threadsafe(self._loop.call_later, lasting, self._reset)

    def lead(self, target: Target) -> None:
        """Lead to another server from now on. What is open stays as it is."""
        self._target = target

    def reset(self) -> None:
        """Reset all connections."""
        self._loop.call_soon_threadsafe(self._reset)

    def calm(self) -> None:
        """Stop cutting and delaying."""
        self._to_cut, self._delay = 0, (0.0, 0.0)

    async def serve(self) -> None:
        """Open the port."""
        self._door = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._door.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Open for nobody any more."""
        if self._door is not None:
            self._door.close()

    def _reset(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if isinstance(self._target, str):
                server_reader, server_writer = await asyncio.open_unix_connection(self._target)
            else:
                server_reader, server_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        wire = _Wire(self, reader, writer, server_reader, server_writer)
        both = {writer, server_writer}
        self._open |= both
        try:
            await wire.carry()
        finally:
            self._open -= both
            for end in both:
                end.close()  # What the server was sent it still reads, and does.

    async def hold(self) -> None:
        """Wait for as long as what comes now is to be late, or for ever in silence: a reset ends that."""
        while (left := self._silent_until - monotonic()) > 0:
            await asyncio.sleep(left + 1)
        seconds, until = self._delay
        if seconds and monotonic() < until:
            await asyncio.sleep(seconds)

    def takes_cut(self) -> bool:
        """Whether the answer of a commit that is sent now is to be cut."""
        if self._to_cut <= 0:
            return False
        self._to_cut -= 1
        self.cut += 1
        return True

    @property
    def understands(self) -> bool:
        """Whether it looks for commits."""
        return self._understands


class _Wire:
    """One client, and its connection to the server."""

    def __init__(
        self,
        link: Link,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        self._link = link
        self._client = reader, writer
        self._server = server_reader, server_writer
        self._frontend = Frontend()
        self._is_cut = False

    async def carry(self) -> None:
        """Hand on both ways until one side ends."""
        ways = [
            asyncio.create_task(self._hand_on(self._client[0], self._to_server)),
            asyncio.create_task(self._hand_on(self._server[0], self._to_client)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            if self._is_cut:
                self._client[1].transport.abort()

    async def _hand_on(self, reader: asyncio.StreamReader, hand: Callable[[bytes], Awaitable[bool]]) -> None:
        with suppress(OSError):
            while piece := await reader.read(PIECE):
                await self._link.hold()
                if not await hand(piece):
                    return

    async def _to_server(self, piece: bytes) -> bool:
        if self._link.understands and self._frontend.feed(piece) and self._link.takes_cut():
            self._is_cut = True
        self._server[1].write(piece)
        await self._server[1].drain()
        if self._is_cut:
            await asyncio.sleep(PATIENCE)  # The answer ends it sooner.
        return not self._is_cut

    async def _to_client(self, piece: bytes) -> bool:
        if self._is_cut:
            return False
        self._client[1].write(piece)
        await self._client[1].drain()
        return True
