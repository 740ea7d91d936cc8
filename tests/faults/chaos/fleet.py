"""The processes that are broken, with their links, and how each comes back."""

from __future__ import annotations

import time
from typing import Final

from tests.faults.harness.links import Link, Links
from tests.faults.harness.redis_server import Redis
from tests.faults.harness.roles import Process
from tests.faults.harness.site import Site, manage

POLL: Final = "0.2"  # Seconds.
# The rest of the settings: as they come, with a connection for each message; or such as to take over from a dead worker sooner,
# with connections that are kept, as README sets it. Seconds.
SETTINGS: Final[dict[str, dict[str, str]]] = {
    "default": {"TEST_LEASE": "60", "TEST_SILENCE": "12"},
    "tuned": {"TEST_LEASE": "5", "TEST_SILENCE": "4", "TEST_CONN_MAX_AGE": "600"},
}
SILENT: Final = {"default": 12.0, "tuned": 5.0}  # Seconds of silence after which a worker counts as gone.

# Over what → name and role of each process.
FLEETS: Final[dict[str, dict[str, str]]] = {
    "embedded": {"one": "worker", "two": "worker with threads", "three": "worker"},
    "celery": {
        "prefork": "celery prefork",
        "threads": "celery threads",
        "polls": "celery poll",
        "poller": "poller",
        "beat": "beat",
    },
}
WORKERS: Final = frozenset({"worker", "worker with threads", "celery prefork", "celery threads"})
STOPPING: Final = 20.0  # Seconds that a process may take to stop.


class Fleet:
    """
    Processes of a site, each with a link of its own to the database, and one link of all to the broker.

    Args:
        site: Where they work.
        links: Where links live.
        over: ``embedded`` or ``celery``.
        broker: For Celery.
        settings: ``default`` or ``tuned``.
    """

    def __init__(self, site: Site, links: Links, over: str, broker: Redis | None, settings: str) -> None:
        self.site = site
        self.silent = SILENT[settings]
        self.broker = broker
        self.broker_link: Link | None = None
        more = {**SETTINGS[settings], "TEST_POLL_INTERVAL": POLL}
        if broker is not None:
            self.broker_link = links.open(("127.0.0.1", broker.port))
            more["TEST_BROKER_URL"] = broker.url(self.broker_link.port)
            manage({**site.environment(), **more}, "timeline_install_beat", "--verbosity", "0")
        self.links: dict[str, Link] = {}
        self.processes: dict[str, Process] = {}
        self._later: dict[str, tuple[float, str]] = {}
        for name, role in FLEETS[over].items():
            self.links[name] = links.open(site.postgres.socket, commits=True)
            environment = site.environment(self.links[name].port, **more)
            self.processes[name] = Process(role, name, environment, site.journal)

    def at_hand(self, *, workers: bool = False) -> list[str]:
        """Names of processes to which nothing is done at the moment."""
        roles = WORKERS if workers else {process.role for process in self.processes.values()}
        return [name for name, process in self.processes.items() if name not in self._later and process.role in roles]

    def later(self, name: str, seconds: float, what: str) -> None:
        """Thaw or start this process again then."""
        self._later[name] = time.monotonic() + seconds, what

    def tend(self, *, now: bool = False) -> None:
        """Do what is to be done by now, or all there is to do; and start what ended by itself."""
        for name, (at, what) in list(self._later.items()):
            process = self.processes[name]
            if what == "thaw" and (now or time.monotonic() >= at):
                process.thaw()
                del self._later[name]
            elif what == "stop" and (now or not process.is_alive or time.monotonic() >= at):
                if process.is_alive and not process.wait(STOPPING if now else 0):
                    process.kill()
                process.restart()
                del self._later[name]
        for name in self.at_hand():
            if not self.processes[name].is_alive:
                self.site.journal.write("fault", kind=f"{name} ended by itself")
                print(f"  {name} ended by itself; see {name}.log", flush=True)
                self.processes[name].restart()

    def stop(self) -> None:
        """End all: asked first, and killed if they do not."""
        for process in self.processes.values():
            process.thaw()
            process.terminate()
        for process in self.processes.values():
            if not process.wait(STOPPING):
                process.kill()
