"""A Redis of our own: started, wiped, killed, and its messages doubled."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import redis

from tests.faults.harness.ports import free_port


class Redis:
    """
    A server on a port of loopback, which keeps nothing when it is killed.

    Args:
        folder: Where it writes its log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self.start()

    def url(self, port: int | None = None) -> str:
        """Where it is; or where it is through a link's port."""
        return f"redis://127.0.0.1:{port or self.port}/0"

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        command = [shutil.which("redis-server") or "redis-server", "--bind", "127.0.0.1", "--port", str(self.port)]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen([*command, "--save", "", "--appendonly", "no"], stdout=log, stderr=log)
        self.client = redis.from_url(self.url(), socket_timeout=2)
        give_up = time.monotonic() + 120
        while True:
            try:
                self.client.ping()
            except redis.RedisError:
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """End it at once: all messages are lost."""
        self._process.kill()
        self._process.wait()
        self.client.close()

    def wipe(self) -> None:
        """Lose all messages."""
        self.client.flushall()

    def double(self, *queues: str, within: float = 1.0) -> int:
        """
        Put each message that waits into its queue once more; if there are none, look for a while. Gives how many.

        A message that waits several times is put there once more, too: else a queue that nobody gets to would soon hold nothing
        but copies.
        """
        give_up = time.monotonic() + within
        while time.monotonic() < give_up:
            doubled = 0
            for queue in queues:
                if waiting := list(dict.fromkeys(self.client.lrange(queue, 0, -1))):
                    self.client.lpush(queue, *reversed(waiting))
                    doubled += len(waiting)
            if doubled:
                return doubled
            time.sleep(0.002)
        return 0
