"""Edges: what the database passes is what the tables of machines have, from the moment that code with them is there."""

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.machines import Booking, S, placed
from timeline import Machine, Timeline, after, task
from timeline.dispatch.poll import dispatch
from timeline.features.machines.checks import check_edges
from timeline.features.machines.edges import forget_edges, mind_refusal, missing_edges, remove_edges, see_edges
from timeline.models import Edge
from timeline.receivers import on_migrate
from timeline.shortcuts import emit
from timeline.testing import only_timelines
from timeline.worker.embedded import Worker

TABLE = {"shut": {"door.opened": "open"}, "open": {"door.shut": "shut", "door.broken": "broken"}, "broken": {}}
PAIRS = {("shut", "open"), ("open", "shut"), ("open", "broken")}


class Door(Machine):
    entity = "testapp.Order"
    initial = "shut"
    table = TABLE


class Plain(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def look(self, order): ...


class Nobody:
    def connect(self): ...

    def send(self, batch, *, using): ...


@pytest.fixture(autouse=True)
def _door(transactional_db):
    Edge.objects.all().delete()
    forget_edges("default")
    with only_timelines(Door):
        yield
    forget_edges("default")


def there():
    return set(Edge.objects.filter(timeline="door").values_list("from_state", "to_state"))


class TestSeeEdges:
    def test_writes_what_is_missing_and_asks_once(self, django_assert_num_queries):
        Edge.objects.create(timeline="door", from_state="shut", to_state="open")

        see_edges(using="default")

        assert there() == PAIRS
        with django_assert_num_queries(0):
            see_edges(using="default")

    def test_removes_nothing(self):
        Edge.objects.create(timeline="door", from_state="open", to_state="painted")

        see_edges(using="default")

        assert there() == PAIRS | {("open", "painted")}

    def test_asks_again_where_it_was_rolled_back(self):
        with transaction.atomic():
            see_edges(using="default")
            see_edges(using="default")
            transaction.set_rollback(True)
        assert there() == set()

        see_edges(using="default")

        assert there() == PAIRS

    def test_asks_again_for_another_table_of_the_name(self):
        see_edges(using="default")

        class Other(Machine):
            name = "door"
            entity = "testapp.Order"
            initial = "shut"
            table = {**TABLE, "shut": {"door.opened": "open", "door.lost": "broken"}}

        with only_timelines(Other):
            see_edges(using="default")

        assert there() == PAIRS | {("shut", "broken")}

    def test_asks_nothing_where_there_is_no_machine(self, django_assert_num_queries):
        with only_timelines(Plain), django_assert_num_queries(0):
            see_edges(using="default")
            assert missing_edges("default") == {}


class TestCodeThatIsNew:
    """A deploy of Python only: nobody has migrated."""

    def test_has_its_edges_by_a_poller(self, now):
        dispatch(sender=Nobody(), now=now, using="default")

        assert there() == PAIRS

    def test_has_its_edges_by_a_worker(self):
        Worker("default").poll()

        assert there() == PAIRS

    def test_has_its_edges_by_the_first_who_moves(self, order):
        run = placed(order, "shut", machine=Door)

        emit("door.opened", order)

        run.refresh_from_db()
        assert run.state == "open"

    def test_has_its_edges_by_migrate(self):
        on_migrate(using="default")

        assert there() == PAIRS

    def test_is_named_by_the_check_until_then(self):
        [found] = check_edges(None, databases=["default"])
        see_edges(using="default")

        assert found.id == "timeline.W013"
        assert found.msg == (
            "The database 'default' does not know these moves of the machine door yet: "
            "open → broken, open → shut, shut → open."
        )
        assert check_edges(None, databases=["default"]) == []

    def test_is_not_named_by_migrate_which_writes_it(self, monkeypatch):
        monkeypatch.setattr("sys.argv", ["manage.py", "migrate", "--noinput"])

        assert check_edges(None, databases=["default"]) == []

    def test_names_a_few_of_many(self):
        with only_timelines(Booking):
            [found] = check_edges(None, databases=["default"])

        assert f"and {len(Booking.definition.machine.edges) - 5} more" in found.msg


def test_a_move_asks_for_them_no_more_once_they_are_seen(order):
    placed(order, S.QUEUED)
    with only_timelines(Booking):
        see_edges(using="default")
        forget_edges("default")
        emit("portal.open", order)  # Reads all there are.
        with CaptureQueriesContext(connection) as queries:
            emit("auth.ok", order)

    assert not any("timeline_edge" in query["sql"] for query in queries)


class TestMindRefusal:
    def test_tells_a_database_that_was_restored_at_the_next_try(self, order, caplog):
        run = placed(order, "shut", machine=Door)
        see_edges(using="default")
        Edge.objects.all().delete()  # As in the copy that was restored.

        with pytest.raises(IntegrityError, match="no such move"), transaction.atomic():
            emit("door.opened", order)
        emit("door.opened", order)

        run.refresh_from_db()
        assert run.state == "open"
        assert "its moves are written anew at the next try" in caplog.text

    def test_leaves_alone_what_was_refused_for_another_reason(self, django_assert_num_queries):
        see_edges(using="default")

        mind_refusal(IntegrityError("CHECK constraint failed: booking_state_known"), using="default")

        with django_assert_num_queries(0):
            see_edges(using="default")


class TestRemoveEdges:
    def test_takes_away_all_others_and_asks_anew(self):
        see_edges(using="default")
        Edge.objects.create(timeline="window", from_state="open", to_state="shut")

        with transaction.atomic():
            removed = remove_edges("door", but={("shut", "open"), ("open", "shut")}, using="default")

        assert removed == [("open", "broken")]
        assert there() == {("shut", "open"), ("open", "shut")}
        assert Edge.objects.filter(timeline="window").exists()
        see_edges(using="default")
        assert there() == PAIRS
