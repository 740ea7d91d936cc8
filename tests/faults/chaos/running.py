"""One run of chaos: work and faults, rest, judgement."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from tests.faults.chaos.faults import FAULTS
from tests.faults.chaos.fleet import Fleet
from tests.faults.check.history import Violation
from tests.faults.check.judging import judge, read_history, recoveries, shown
from tests.faults.harness.links import Link, Links
from tests.faults.harness.postgres import Postgres
from tests.faults.harness.redis_server import Redis
from tests.faults.harness.roles import surroundings
from tests.faults.harness.site import Site, new_folder, remove_folder
from tests.forking import Process, start

EVERY: Final = 1.0  # Seconds between faults.
REST: Final = 120.0  # Seconds in which something has to end, once the faults have stopped, until all has.
SLACK: Final = 1.0  # Seconds that a busy machine may keep a process waiting between its last look and a handler.
STARTING: Final = 180.0  # Seconds that processes may take to start.
ENDED: Final = "SELECT count(*) FROM timeline_scheduledtask WHERE state = 'completed'"
OPEN: Final = "SELECT count(*) FROM timeline_scheduledtask WHERE state NOT IN ('completed', 'discarded', 'cancelled')"


@dataclass
class Outcome:
    """What became of it."""

    seed: int
    over: str
    settings: str
    tasks: int
    visits: dict[str, int]  # Runs of a machine, by the state they ended in.
    faults: dict[str, int]
    resting: float
    recovery: list[float]
    violations: list[Violation]
    folder: Path

    def __str__(self) -> str:
        visits = ", ".join(f"{state} {count}" for state, count in sorted(self.visits.items()))
        faults = ", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.items()))
        return (
            f"seed {self.seed} over {self.over}, {self.settings}: {self.tasks} tasks,"
            f" {sum(self.visits.values())} visits ({visits}),"
            f" {sum(self.faults.values())} faults ({faults}),"
            f" at rest {self.resting:.0f} s after the last, recovery {shown(self.recovery)},"
            f" {len(self.violations)} violations"
        )


def run_chaos(
    *,
    tasks: int,
    seconds: float,
    seed: int,
    over: str,
    settings: str = "tuned",
    keep: bool = False,
    postgres: Postgres | None = None,
) -> Outcome:
    """
    Run work and faults for so many seconds (longer, where people take longer to ask for so much), let it rest, and judge.

    Args:
        tasks: How many.
        seconds: For how long there are faults.
        seed: What everybody does is drawn from it.
        over: ``embedded`` or ``celery``.
        settings: ``default`` or ``tuned``.
        keep: Leave the folder with journals and logs, whatever comes; it stays where there are violations.
        postgres: A server with a migrated database ``template``; None: one that is made for this.
    """
    folder = new_folder()
    with ExitStack() as stack:
        template = "template" if postgres else ""
        if postgres is None:
            postgres = Postgres(folder / "pg")
            stack.callback(postgres.remove)
        journals = folder / "journals"
        journals.mkdir()
        site = Site(postgres, f"chaos_{over}_{folder.name}", journals, template)
        links = stack.enter_context(Links())
        broker = None
        if over == "celery":
            broker = Redis(folder)
            stack.callback(broker.kill)
        fleet = Fleet(site, links, over, broker, settings)
        stack.callback(fleet.stop)
        link = links.open(postgres.socket, commits=True)
        with clients(site, link, tasks=tasks, seconds=seconds, seed=seed) as asking:
            faults = break_things(fleet, link, over, seed, until=asking)
        resting = come_to_rest(fleet)
        fleet.stop()
        history = read_history(site.url, journals)
        violations = judge(history, slack=SLACK)
        visits = dict(Counter(run.state for run in history.runs.values() if run.timeline in history.machines))
    if not violations and not keep:
        remove_folder(folder)
    return Outcome(
        seed, over, settings, len(history.tasks), visits, dict(faults), resting, recoveries(history), violations, folder
    )


@contextmanager
def clients(site: Site, link: Link, *, tasks: int, seconds: float, seed: int) -> Iterator[Process]:
    """Let the clients work; they have done so at the end."""
    command = ["tests.faults.chaos.clients", "--tasks", str(tasks), "--seconds", str(seconds), "--seed", str(seed)]
    with (site.folder / "clients.log").open("wb") as log:
        process = start(*command, environment={**surroundings(), **site.environment(link.port)}, log=log)
    try:
        yield process
        if process.wait(REST):
            raise RuntimeError((site.folder / "clients.log").read_text())
    finally:
        process.kill()
        process.wait()


def break_things(fleet: Fleet, link: Link, over: str, seed: int, until: Process) -> Counter[str]:
    """Make one fault a second, from the first outcome on until that process ends; gives how many of each kind."""
    wait_for_work(fleet)
    chance = random.Random(seed)  # noqa: S311 (repeatable, not secret)
    begun, faults = time.monotonic(), Counter[str]()
    while until.poll() is None:
        passed = time.monotonic() - begun
        fleet.tend()
        fault = chance.choice(FAULTS[over])
        link.cut_commits(chance.randint(0, 1))  # Those who ask do not get every answer either.
        if fleet.at_hand(workers=True):
            told = fault(fleet, chance)
            faults[fault.__name__] += 1
            print(f"  {passed:5.1f} s  {fault.__name__} {told}", flush=True)
        time.sleep(max(EVERY - (time.monotonic() - begun - passed), 0))
    link.calm()
    return faults


def wait_for_work(fleet: Fleet) -> None:
    """Wait until the processes have started and a task has ended."""
    give_up = time.monotonic() + STARTING
    while time.monotonic() < give_up and not number(fleet, ENDED):
        time.sleep(0.2)


def number(fleet: Fleet, query: str) -> int:
    """The number that a query gives."""
    with psycopg.connect(fleet.site.url) as connection:
        [found] = connection.execute(query).fetchone()
        return int(found)


def come_to_rest(fleet: Fleet) -> float:
    """Stop all faults, and wait until no task is open, or none ends any more; gives how many seconds that took."""
    for link in fleet.links.values():
        link.calm()
    fleet.tend(now=True)
    begun = since = time.monotonic()
    left = number(fleet, OPEN)
    while left and time.monotonic() - since < REST:
        time.sleep(0.5)
        fleet.tend()
        if (now := number(fleet, OPEN)) < left:
            left, since = now, time.monotonic()
    return time.monotonic() - begun
