"""Signs of workers: one that gives none any more holds nothing, and one that is there keeps what it runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction

from tests.processes import wait_for
from timeline.clocks import MachineTime
from timeline.dispatch.rescue import rescue
from timeline.dispatch.worker_signs import extend_leases, give_sign, let_go_of_the_silent
from timeline.lifecycle import State
from timeline.models import ScheduledTask, Sign
from timeline.timing import EARLIEST

pytestmark = pytest.mark.django_db


SLOWLY = 10  # A second of these tests lasts so many, so that what this machine takes itself does not count.


def seconds(count):
    return timedelta(seconds=SLOWLY * count)


def ago(count):
    return MachineTime(-seconds(count))


@pytest.fixture(autouse=True)
def _slowly(settings):
    settings.TIMELINE = {"SILENCE": seconds(12)}


@pytest.fixture
def worker():
    """Have a worker whose last sign is so many seconds ago, and that is missed since so many."""

    def make(name="host:1:ab12", *, seen, missed=None):
        return Sign.objects.create(worker=name, seen_at=ago(seen), missed_at=None if missed is None else ago(missed))

    return make


@pytest.fixture
def running(make_task):
    """Have a task run by a worker, with a lease that lasts."""

    def make(name="host:1:ab12", **columns):
        return make_task(state=State.ACTIVE, attempt=1, worker=name, **columns)

    return make


def let_go(*, just_waited=False):
    let_go_of_the_silent(just_waited=just_waited, using="default")


def given_up():
    return set(ScheduledTask.objects.given_up())


class TestGiveSign:
    def test_is_one_row_a_worker_by_the_real_clock(self):
        for name in ("host:1:ab12", "host:1:ab12", "host:1:cd34"):
            give_sign(name, using="default")

        assert set(Sign.objects.values_list("worker", flat=True)) == {"host:1:ab12", "host:1:cd34"}
        assert abs(Sign.objects.first().seen_at - datetime.now(UTC)) < timedelta(minutes=1)

    def test_ends_that_it_is_missed(self, worker):
        sign = worker(seen=20, missed=10)

        give_sign(sign.worker, using="default")

        sign.refresh_from_db()
        assert sign.missed_at is None

    @pytest.mark.only_postgresql
    def test_does_not_wait_for_the_disk(self, transactional_db, settings_of_writes):
        """A living worker is silent otherwise, as long as the disk of the database stalls."""
        assert settings_of_writes("synchronous_commit", lambda: give_sign("mail", using="default")) == ["off"]

    @pytest.mark.only_postgresql
    def test_leaves_that_to_the_transaction_of_a_caller(self, transactional_db, settings_of_writes):
        def act():
            with transaction.atomic():
                give_sign("mail", using="default")

        assert settings_of_writes("synchronous_commit", act) == ["on"]


class TestLetGoOfTheSilent:
    def test_lets_the_leases_of_one_run_out_and_forgets_it(self, worker, running):
        worker(seen=13, missed=4)
        worker("host:2:cd34", seen=1)
        lost, kept = running(), running("host:2:cd34")

        let_go()

        assert given_up() == {lost}
        assert Sign.objects.get().worker == kept.worker

    @pytest.mark.parametrize(
        ("seen", "missed"), [(1, None), (8, None), (10, None), (13, None), (3600, None), (13, 2), (11, 3)]
    )
    def test_keeps_what_one_runs_that_may_be_there(self, worker, running, seen, missed):
        """Though the database was away for an hour: nobody could give a sign, and each is missed for a beat before."""
        worker(seen=seen, missed=missed)
        running()

        let_go()

        assert given_up() == set()
        assert Sign.objects.exists()

    def test_keeps_what_one_runs_that_could_not_give_a_sign_meanwhile(self, worker, running):
        """A rescue that stands still has its row locked."""
        sign, looked = worker(seen=10, missed=1), []
        running()

        def stand_still(execute, sql, parameters, many, context):
            done = execute(sql, parameters, many, context)
            if not looked:
                looked.append(sql)
                Sign.objects.filter(pk=sign.pk).update(seen_at=ago(30), missed_at=ago(20))
            return done

        with transaction.atomic(), connection.execute_wrapper(stand_still):
            let_go()

        assert given_up() == set()

    @pytest.mark.parametrize(("seen", "missed"), [(8, False), (10, True), (3600, True)])
    def test_misses_one_after_three_quarters_of_the_silence(self, worker, seen, missed):
        sign = worker(seen=seen)

        let_go()

        sign.refresh_from_db()
        assert bool(sign.missed_at) == missed

    def test_gives_everybody_another_beat_if_it_had_to_wait_itself(self, worker, running):
        """On SQLite a transaction that holds the one writer keeps others from giving signs, too."""
        sign = worker(seen=13, missed=4)
        running()

        let_go(just_waited=True)

        sign.refresh_from_db()
        assert given_up() == set()
        assert abs(sign.missed_at - datetime.now(UTC)) < seconds(3)

    def test_takes_as_long_as_the_settings_say(self, worker, running, settings):
        settings.TIMELINE = {"SILENCE": seconds(60)}
        worker(seen=50, missed=30)
        running()

        let_go()

        assert given_up() == set()

    def test_leaves_what_is_on_its_way(self, worker, make_task):
        worker(seen=13, missed=4)
        make_task(state=State.PENDING, worker="host:1:ab12")

        let_go()

        assert given_up() == set()


class TestRescueOfWhatASilentWorkerRan:
    def test_is_at_once(self, worker, running, now):
        worker(seen=13, missed=4)
        row = running()

        rescued = rescue(now=now, using="default")

        assert rescued.retried == [row]
        assert "worker host:1:ab12 was not heard of" in rescued.retried[0].reason


class TestRescueOfWhatALivingWorkerRuns:
    """Its lease ran out: somebody had the row locked for long, and rolled back just now."""

    @pytest.fixture
    def row(self, worker, running):
        worker(seen=1)
        return running(lease_expires_at=EARLIEST)

    def test_gives_it_a_little_longer_and_says_so(self, row, now):
        assert rescue(now=now, using="default") == ([], [], [])

        row.refresh_from_db()
        assert (row.state, row.attempt) == (State.ACTIVE, 1)
        assert timedelta(seconds=21) < row.lease_expires_at - datetime.now(UTC) < timedelta(seconds=41)
        entry = row.log.get()
        assert (entry.from_state, entry.to_state, entry.detail["grace"]) == (State.ACTIVE, State.ACTIVE, 1)

    def run_out(self, row):
        """Let the time that was given be over."""
        row.refresh_from_db()
        ScheduledTask.objects.filter(pk=row.pk).update(lease_expires_at=ago(1))

    def test_gives_it_up_if_that_runs_out_as_well(self, row, now):
        rescue(now=now, using="default")
        self.run_out(row)

        assert rescue(now=now, using="default").retried == [row]

    def test_gives_it_longer_again_if_it_was_kept_up_meanwhile(self, row, now, settings):
        """A minute later somebody else has the row locked for long."""
        settings.TIMELINE = {"LEASE": timedelta(milliseconds=200), "SILENCE": seconds(12)}
        rescue(now=now, using="default")
        extend_leases({row.pk: 1}, using="default")
        row.refresh_from_db()
        wait_for(lambda: row in given_up(), "the end of its lease")

        assert rescue(now=now, using="default") == ([], [], [])
        assert row.log.count() == 2

    def test_keeps_it_where_the_clock_of_the_database_was_set_an_hour_forward(self, worker, running, now):
        """By that clock its lease and its sign are of long ago. It gives another sign within a beat."""
        sign = worker("host:2:cd34", seen=3600)
        row = running("host:2:cd34", lease_expires_at=ago(3540))

        assert rescue(now=now, using="default") == ([], [], [])
        give_sign(sign.worker, using="default")
        extend_leases({row.pk: 1}, using="default")

        assert rescue(now=now, using="default") == ([], [], [])
        row.refresh_from_db()
        assert row.lease_expires_at - datetime.now(UTC) > timedelta(seconds=41)

    def test_gives_another_attempt_its_own(self, row, now):
        rescue(now=now, using="default")
        ScheduledTask.objects.filter(pk=row.pk).update(attempt=2, lease_expires_at=EARLIEST)

        assert rescue(now=now, using="default") == ([], [], [])

    def test_gives_up_what_a_worker_without_signs_holds(self, running, now):
        """There the lease alone counts."""
        row = running(lease_expires_at=EARLIEST)

        assert rescue(now=now, using="default").retried == [row]
