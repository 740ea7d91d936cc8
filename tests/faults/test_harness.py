"""What breaks things does: links, the server, the broker, processes and their clocks."""

from __future__ import annotations

import os
import time

import psycopg
import pytest
import redis

from tests.faults.check.journals import read_journals
from tests.faults.harness.frontend import Frontend
from tests.faults.harness.roles import Process

pytestmark = [pytest.mark.only_postgresql, pytest.mark.processes]


@pytest.fixture
def link(postgres, links):
    """A link to the server that understands its clients."""
    return links.open(postgres.socket, commits=True)


@pytest.fixture
def connect(site, link):
    """Connect through the link."""
    made = []

    def make(**options):
        made.append(psycopg.connect(site.environment(link.port)["TEST_DATABASE_URL"], **options))
        return made[-1]

    yield make
    for connection in made:
        connection.close()


def subjects(site):
    with psycopg.connect(site.url) as connection:
        return connection.execute("SELECT count(*) FROM faults_subject").fetchone()[0]


INSERT = "INSERT INTO faults_subject (due_at) VALUES (%s)"


class TestLink:
    def test_cuts_the_answer_of_a_commit(self, site, connect, link):
        """The rows are there, and the client was told of an error."""
        connection = connect()
        link.cut_commits(1)
        connection.execute(INSERT, [None])

        with pytest.raises(psycopg.OperationalError):
            connection.commit()

        assert subjects(site) == 1
        assert link.cut == 1

    def test_cuts_the_answer_of_a_statement_that_commits_by_itself(self, site, connect, link):
        connection = connect(autocommit=True)
        link.cut_commits(1)
        connection.execute("SELECT 1")  # Commits nothing.

        with pytest.raises(psycopg.OperationalError):
            connection.execute(INSERT, [None])

        assert subjects(site) == 1

    def test_cuts_no_other_answer(self, site, connect, link):
        """Neither that of a statement within a transaction, nor that of a rollback."""
        connection = connect()
        link.cut_commits(1)

        connection.execute(INSERT, [None])
        connection.rollback()

        assert subjects(site) == link.cut == 0

    def test_resets(self, connect, link):
        connection = connect()

        link.reset()

        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT pg_sleep(10)")

    def test_swallows_everything_for_a_while_and_then_resets(self, connect, link):
        connection = connect()
        begun = time.monotonic()
        link.silence(0.5)

        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")

        assert time.monotonic() - begun >= 0.5
        assert connect().execute("SELECT 1").fetchone() == (1,)

    def test_delays(self, connect, link):
        connection = connect()
        begun = time.monotonic()
        link.delay(0.2, lasting=60)

        connection.execute("SELECT 1")

        assert time.monotonic() - begun >= 0.4  # There and back.
        link.calm()


class TestFrontend:
    GREETING = b"\x00\x00\x00\x08\x00\x03\x00\x00"

    def message(self, kind, body):
        return kind + (len(body) + 4).to_bytes(4, "big") + body

    def test_sees_a_commit_in_whatever_pieces_it_comes(self):
        sent = self.GREETING + self.message(b"Q", b"BEGIN\x00") + self.message(b"Q", b"COMMIT\x00")
        frontend = Frontend()

        seen = [frontend.feed(sent[place : place + 1]) for place in range(len(sent))]

        assert seen == [False] * (len(sent) - 1) + [True]

    def test_sees_the_commit_of_a_prepared_statement_when_it_is_synchronized(self):
        frontend = Frontend()
        frontend.feed(self.GREETING + self.message(b"P", b"one\x00UPDATE x SET y = 1\x00\x00\x00"))

        bound = frontend.feed(self.message(b"B", b"\x00one\x00\x00\x00\x00\x00\x00\x00"))
        executed = frontend.feed(self.message(b"E", b"\x00\x00\x00\x00\x00"))
        synchronized = frontend.feed(self.message(b"S", b""))

        assert (bound, executed, synchronized) == (False, False, True)


class TestPostgres:
    def test_keeps_what_was_committed_when_it_is_killed(self, site, postgres):
        with psycopg.connect(site.url, autocommit=True) as connection:
            connection.execute(INSERT, [None])
            postgres.kill()
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")

        postgres.start()

        assert subjects(site) == 1


class TestRedis:
    def test_loses_everything_when_it_is_wiped_or_killed(self, redis_server):
        redis_server.client.lpush("queue", "one")
        redis_server.wipe()
        assert redis_server.client.llen("queue") == 0
        redis_server.client.lpush("queue", "two")

        redis_server.kill()
        with pytest.raises(redis.ConnectionError):
            redis_server.client.ping()
        redis_server.start()

        assert redis_server.client.llen("queue") == 0

    def test_doubles_what_waits(self, redis_server):
        redis_server.client.lpush("queue", "one", "two")

        assert redis_server.double("queue", "none") == 2

        assert redis_server.client.lrange("queue", 0, -1) == [b"two", b"one"] * 2
        assert redis_server.double("queue") == 2
        assert redis_server.client.llen("queue") == 6


class TestProcess:
    @pytest.fixture
    def start(self, site):
        """Start a process by its role; killed at the end."""
        started = []

        def run(role, name, moved=0.0, **environment):
            given = site.environment(TEST_BROKER_URL="redis://127.0.0.1:1/0", **environment)
            started.append(Process(role, name, given, site.journal, moved))
            return started[-1]

        yield run
        for process in started:
            process.kill()

    def wait_for_word(self, site, name, word):
        give_up = time.monotonic() + 120
        while word not in (site.folder / f"{name}.log").read_text() and time.monotonic() < give_up:
            time.sleep(0.05)
        assert word in (site.folder / f"{name}.log").read_text()

    def test_is_frozen_thawed_stopped_and_killed(self, start, site):
        """In a group of its own, and all of it is written down."""
        worker = start("worker with threads", "hands")
        self.wait_for_word(site, "hands", "polls every")

        worker.freeze()
        worker.terminate()
        stayed = not worker.wait(0.3)
        worker.thaw()
        ended = worker.wait(120)
        worker.restart()
        worker.kill()

        assert stayed
        assert ended
        assert not worker.is_alive
        assert os.getpgid(0) != worker.group
        assert [trouble.kind for trouble in read_journals(site.folder).troubles] == ["frozen", "killed"]

    @pytest.mark.needs("faketime")
    def test_has_a_clock_that_is_moved(self, start, site):
        """It is told another time, and writes down the true one."""
        start("clock", "clock", moved=3600.0)

        self.wait_for_word(site, "clock", "\n")
        told, written = map(float, (site.folder / "clock.log").read_text().split())
        assert abs(told - time.time() - 3600) < 60
        assert abs(written - time.time()) < 60
