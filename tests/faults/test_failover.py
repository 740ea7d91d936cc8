"""
A failover: the primary takes no writes any more, its replica is promoted, and new connections lead there.

Connections that are kept are not closed; they lead to the server that was the primary, and it answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter

import psycopg
import pytest

from tests.faults.check.judging import judge, read_history
from tests.faults.harness.postgres import Postgres
from tests.faults.harness.roles import ROOT, Process, surroundings
from tests.faults.harness.site import Site, new_folder, remove_folder
from tests.processes import wait_for

pytestmark = [pytest.mark.only_postgresql, pytest.mark.processes]

KEPT = {"TEST_LEASE": "4", "TEST_SILENCE": "3", "TEST_POLL_INTERVAL": "0.2", "TEST_CONN_MAX_AGE": "600"}
LONG = 9.0  # Seconds of a handler: longer than two leases.
BUSY = 1.0  # Seconds that a busy machine may keep a process waiting.
ENDED = "SELECT count(*) FROM timeline_scheduledtask WHERE id::text = ANY(%s) AND state = 'completed'"
ROLES = {"embedded": ["worker with threads", "worker"], "celery": ["celery prefork", "celery threads", "poller"]}


@pytest.fixture
def servers():
    """A primary and its replica, each a server of its own."""
    folder = new_folder()
    primary = Postgres(folder / "a")
    made = [primary]
    try:
        made.append(Postgres(folder / "b", follows=primary))
        yield made
    finally:
        for server in reversed(made):
            server.remove()
        remove_folder(folder)


@pytest.fixture
def links_to(links, servers):
    """Open a link of its own for each process; they all lead to the primary."""
    opened = []

    def open_one():
        opened.append(links.open(servers[0].socket))
        return opened[-1]

    open_one.opened = opened
    return open_one


@pytest.fixture
def started():
    processes = []
    yield processes
    for process in processes:
        process.kill()


class TestAFailover:
    @pytest.mark.parametrize("over", list(ROLES))
    def test_repeats_only_what_ran_at_that_moment(self, over, servers, links_to, started, redis_server, tmp_path):
        primary, replica = servers
        site = Site(primary, "site", tmp_path)
        known = {**KEPT, "FAULTS_WITNESS_URL": "", "TEST_BROKER_URL": redis_server.url()}
        for number, role in enumerate(ROLES[over]):
            environment = site.environment(links_to().port, **known)
            started.append(Process(role, f"{over}{number}", environment, site.journal))
        asking = site.environment(links_to().port, **known)
        before = ask(asking, "plain", 20) + ask(asking, "atomic", 20)
        wait_for(lambda: all_ended(primary, before), "what is asked before")
        meanwhile = ask(asking, "plain", 3, seconds=LONG)
        time.sleep(1)

        since = time.time()
        primary.demote()
        replica.promote()
        for link in links_to.opened:
            link.lead(replica.socket)
        until = time.time()

        after = ask(asking, "plain", 20) + ask(asking, "atomic", 20)
        lasting = ask(asking, "plain", 3, seconds=LONG)
        wait_for(lambda: all_ended(replica, before + meanwhile + after + lasting), "the end of all")
        site.journal.trouble("failover", 0, since, until + float(KEPT["TEST_LEASE"]))
        history = read_history(replica.url("site"), tmp_path)
        entered = Counter(one.task_id for one in history.entered)
        assert {entered[task_id] for task_id in after + lasting} == {1}
        assert {entered[task_id] for task_id in meanwhile} <= {1, 2}
        assert judge(history, slack=BUSY) == []


def ask(environment, kind, count, **payload):
    """Schedule so many, as a process that begins after all that was; give their ids."""
    command = [sys.executable, "-m", "tests.faults.app.asking", kind, str(count), json.dumps(payload)]
    done = subprocess.run(
        command, cwd=ROOT, env={**surroundings(), **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def all_ended(server, ids):
    with psycopg.connect(server.url("site")) as connection:
        return connection.execute(ENDED, [ids]).fetchone() == (len(ids),)
