"""The page that finds people and things."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.translation import gettext_lazy

from tests.admin.conftest import LIST, detail, text_of
from tests.rows import NOW
from tests.testapp.models import Order
from timeline import Timeline, task
from timeline.admin.user_pages import MOST
from timeline.exceptions import DefinitionError
from timeline.lifecycle import State
from timeline.models import TimelineRun
from timeline.reading.search import UNLIKE, rank
from timeline.registry import registry
from timeline.testing import only_timelines

FIND = reverse("admin:timeline_scheduledtask_find")


class Writing(Timeline):
    """About accounts, which their own admin finds by email and website."""

    entity = "accounts.User"
    starts_on = "user.enrolled"

    @task()
    def write(self, user): ...


class Shipping(Timeline):
    """About orders, found by their note."""

    entity = "testapp.Order"
    search = "note"

    @task()
    def ship(self, order): ...


class Titled(Timeline):
    """With titles in two languages."""

    entity = "testapp.Order"
    starts_on = "thing.began"
    titles = {"thing.began": "It began"}

    @task(title=gettext_lazy("Yes"))
    def does(self, order): ...

    @task(title="One does it, and no other")
    def does_it(self, order): ...


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Writing, Shipping):
        yield


@pytest.fixture
def viewer(person, browse):
    return browse(person("vera", "view_scheduledtask"))


class TestFind:
    def test_opens_what_is_found_alone(self, viewer):
        order = Order.objects.create(note="blue boots")

        answer = viewer.get(FIND, {"words": "boots BLUE"})

        assert answer.status_code == 302
        assert answer["Location"].endswith(f"?label=testapp.order&id={order.pk}")

    def test_has_the_best_of_very_many_first(self, viewer):
        for number in range(MOST + 10):
            Order.objects.create(note=f"ada{number}")
        best = Order.objects.create(note="Ada Lovelace")

        [kind] = viewer.get(FIND, {"words": "ada"}).context["kinds"]

        assert kind.is_cut
        assert int(kind.hits[0].ref.id) == best.pk

    def test_finds_what_pages_call_it_by_kind_and_id(self, viewer):
        order = Order.objects.create(note="blue boots")

        for words in (f"order {order.pk}", f"Order {order.pk}", f"testapp.order {order.pk}"):
            answer = viewer.get(FIND, {"words": words})
            assert answer["Location"].endswith(f"?label=testapp.order&id={order.pk}")

    def test_finds_tasks_by_the_beginning_of_their_ids(self, viewer, about):
        task = about(Order.objects.create(), 1)

        answer = viewer.get(FIND, {"words": str(task.pk)[:23]})

        assert answer["Location"] == detail(task)

    def test_finds_titles_in_each_language_of_the_site(self, viewer, settings):
        settings.LANGUAGES = [("en", "English"), ("de", "German")]
        with only_timelines(Titled):
            for words in ("Yes", "ja"):
                assert "titled.does" in viewer.get(FIND, {"words": words})["Location"]

    def test_finds_timelines_by_their_events_and_what_people_call_them(self, viewer):
        with only_timelines(Titled):
            for words in ("thing.began", "It began"):
                assert "titled" in viewer.get(FIND, {"words": words})["Location"]

    def test_asks_twice_for_each_kind_and_once_for_all_else(self, viewer, person):
        """Four for who looks and may; two for each kind, by key and by words; what waits; and the time."""
        key = person("ben").pk
        Order.objects.create(pk=key, note="blue boots")

        with CaptureQueriesContext(connection) as queries:
            answer = viewer.get(FIND, {"words": str(key)})

        assert len(answer.context["kinds"]) == 2
        assert len(queries) <= 4 + 2 * 2 + 2

    def test_shows_several_by_kind_with_what_waits_for_them(self, viewer, about):
        some = [Order.objects.create(note=f"ada's {number}") for number in range(2)]
        about(some[0], 5, task_key="shipping.ship")

        page = text_of(viewer.get(FIND, {"words": "ada"}))

        assert "Orders" in page
        assert page.count("label=testapp.order") == 2
        assert '<td data-name="Open tasks">1</td>' in page
        assert '<td data-name="Open tasks">0</td>' in page

    def test_finds_by_key(self, viewer):
        Order.objects.create(pk=4711)

        assert viewer.get(FIND, {"words": "4711"})["Location"].endswith("?label=testapp.order&id=4711")

    def test_finds_a_task_by_its_id(self, viewer, about):
        row = about(Order.objects.create(), task_key="shipping.ship")

        assert viewer.get(FIND, {"words": str(row.pk)})["Location"] == detail(row)

    @pytest.mark.parametrize(
        "words", ["99999999999999999999", "'; DROP", "%", "^=@", "\x00", "a\x00b", '"', "x" * 5000, "0 0"]
    )
    def test_takes_whatever_is_typed(self, viewer, words):
        assert viewer.get(FIND, {"words": words}).status_code == 200

    def test_shows_no_more_of_a_kind_than_can_be_read(self, viewer):
        Order.objects.bulk_create(Order(note="many") for _ in range(MOST + 5))

        page = text_of(viewer.get(FIND, {"words": "many"}))

        assert page.count("label=testapp.order") == MOST
        assert f"more than {MOST}" in page

    def test_takes_as_many_queries_for_many_as_for_two(self, viewer, django_assert_num_queries, about):
        for number in range(15):
            about(Order.objects.create(note=f"{'few' if number < 2 else 'many'}"), task_key="shipping.ship")

        with django_assert_num_queries(
            7
        ):  # Session, user, two of permissions, whether anybody polls, orders, what waits.
            viewer.get(FIND, {"words": "few"})
        with django_assert_num_queries(7):
            viewer.get(FIND, {"words": "many"})


class TestOneSearchForAll:
    def test_finds_timelines_and_tasks_by_name_for_who_may_see_all(self, viewer, person, browse, about):
        page = text_of(viewer.get(FIND, {"words": "ship"}))

        assert reverse("admin:timeline_scheduledtask_timeline", args=["shipping"]) in page
        assert f'href="{LIST}?task=shipping.ship&amp;state=all"' in page

        mia = person("mia", is_staff=True)
        about(mia, task_key="writing.write")
        assert "shipping" not in text_of(browse(mia).get(FIND, {"words": "ship"}))

    def test_opens_what_is_found_alone(self, viewer):
        where = reverse("admin:timeline_scheduledtask_timeline", args=["writing"])

        assert viewer.get(FIND, {"words": "writing"}).status_code == 200  # Its task, too.
        assert viewer.get(FIND, {"words": "shipping.ship"})["Location"] == f"{LIST}?task=shipping.ship&state=all"
        assert where in text_of(viewer.get(FIND, {"words": "writing"}))

    def test_finds_failures_by_what_their_errors_say_for_who_may_read_them(self, viewer, person, browse, about):
        given = {
            "task_key": "shipping.ship",
            "state": State.DISCARDED,
            "error": "SMTPError: <full>",
            "fingerprint": "5" * 16,
        }
        about(Order.objects.create(), **given)
        about(Order.objects.create(), **given)
        reader = browse(person("rita", "view_scheduledtask", "view_payload"))

        assert reader.get(FIND, {"words": "smtperror"})["Location"].endswith(f"/dead/?group={'5' * 16}")
        assert viewer.get(FIND, {"words": "smtperror"}).status_code == 200

    def test_finds_what_a_run_is_about_by_its_id(self, viewer):
        order = Order.objects.create()
        run = TimelineRun.objects.create(
            timeline="shipping", entity_label="testapp.order", entity_id=order.pk, started_at=NOW
        )

        assert viewer.get(FIND, {"words": str(run.pk)})["Location"].endswith(f"?label=testapp.order&id={order.pk}")

    def test_marks_who_has_a_failure(self, viewer, about):
        for _ in range(2):
            order = Order.objects.create(note="ada")
        about(order, task_key="shipping.ship", state=State.DISCARDED)

        assert text_of(viewer.get(FIND, {"words": "ada"})).count(">1 failed</span>") == 1

    def test_shows_what_fits_best_first(self, person, browse):
        for name in ("badams", "adamson", "adam"):
            person(name)
        page = text_of(browse(person("vera", "view_scheduledtask", "view_user")).get(FIND, {"words": "adam"}))

        assert page.index("adamson@") < page.index("badams@")

    def test_offers_names_while_somebody_types(self, viewer):
        for number in range(2):
            Order.objects.create(note=f"ship {number}")

        answer = viewer.get(FIND, {"words": "ship", "suggest": ""})

        assert answer["Content-Type"] == "application/json"
        assert {"shipping", "shipping.ship"} <= set(answer.json()["names"])
        assert len(answer.json()["names"]) == 4

    def test_offers_nobody_what_they_may_not_see(self, person, browse, about):
        mia = person("mia", is_staff=True)
        about(mia, task_key="writing.write")

        assert browse(mia).get(FIND, {"words": "ship", "suggest": ""}).json() == {"names": []}


class TestWhoFindsWhom:
    def test_finds_as_the_models_own_admin_does_for_who_may_use_that(self, person, browse):
        person("ada")
        seer = browse(person("vera", "view_scheduledtask", "view_user"))

        assert "ada@example.com" in text_of(seer.get(FIND, {"words": "example.com"}))

    def test_finds_nothing_by_the_models_own_admin_for_who_may_not(self, viewer, person):
        person("ada")

        assert "ada@example.com" not in text_of(viewer.get(FIND, {"words": "example.com"}))

    def test_finds_for_others_only_what_they_may_look_at(self, person, browse, about):
        user = person("olaf", is_staff=True)
        for note in ("olaf's", "olaf's, too"):
            Order.objects.create(note=note)
        about(user, task_key="writing.write")  # So that there is a page for them at all.

        page = text_of(browse(user).get(FIND, {"words": "olaf's"}))

        assert "label=testapp.order" not in page
        assert "Nothing is called" in page

    def test_is_refused_to_who_may_see_no_task(self, person, browse):
        assert browse(person("nobody", "view_user")).get(FIND, {"words": "x"}).status_code in (302, 403)

    def test_has_a_box_on_each_page(self, viewer):
        assert f'action="{FIND}"' in text_of(viewer.get(LIST))


class TestSearch:
    @pytest.mark.parametrize("search", ["nothing", ("note", "nothing"), "note__more", ("note", 5), "ships_at__wrong"])
    def test_is_refused_where_it_names_no_field(self, search):
        class Right(Timeline):
            entity = "testapp.Order"

            @task()
            def do(self, order): ...

        with pytest.raises(DefinitionError, match="search"):
            registry.register(type("Wrong", (Right,), {"search": search}))

    def test_is_refused_without_an_entity(self):
        with pytest.raises(DefinitionError, match="has search, but no entity"):

            class System(Timeline):
                search = "email"

                @task()
                def do(self): ...

    def test_stays_the_name_of_a_task(self):
        class Robot(Timeline):
            @task()
            def search(self): ...

        assert Robot.definition.search == ()
        assert "search" in Robot.definition.tasks


class TestRank:
    def test_puts_whole_words_before_beginnings_and_those_before_what_is_within(self):
        names = ["canada", "ada2@example.com", "Miss Ada", "ada@example.com", "ada", "bob", "a d a of ada"]

        assert sorted(names, key=lambda name: rank(name, "Ada"))[:2] == ["ada", "ada@example.com"]
        assert rank("ada2@example.com", "ada") < rank("Miss Ada", "ada") < rank("canada", "ada") < UNLIKE
        assert rank("bob", "ada") == UNLIKE

    def test_takes_words_in_any_order(self):
        assert rank("Remind that the trial ends", "trial remind") < UNLIKE
        assert rank("Remind that the trial ends", "trial begin") == UNLIKE
