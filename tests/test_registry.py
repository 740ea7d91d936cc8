"""From stored keys and events to code."""

import gc
import sys
from types import ModuleType

import pytest

from project.accounts.timelines import Trial
from timeline.definition import Definition, Timeline, created, task
from timeline.exceptions import DefinitionError, UnknownTask, UnknownTimeline
from timeline.registry import Registry, registry
from timeline.signals import registered
from timeline.timing import after, at


class Shipping(Timeline):
    entity = "testapp.Order"
    starts_on = ("order.placed", created())
    exits = {"order.paid": "paid"}

    @task(at("ships_at"))
    def ship(self, order):
        return None

    @task()
    def recall(self, order):
        return None


class Sweep(Timeline):
    starts_on = "sweep.wanted"
    exits = {"order.paid": "paid"}

    @task(after(days=1))
    def sweep(self):
        return None


def declare(name="wrong", **body):
    @task(after(days=1))
    def go(self, entity):
        return None

    return type("Wrong", (Timeline,), {"name": name, "go": go, **body})


@pytest.fixture
def known():
    """A registry with two timelines: one of orders, one of nothing."""
    made = Registry()
    made.register(Shipping)
    made.register(Sweep)
    return made


class TestDiscover:
    def test_finds_the_timelines_of_installed_apps(self):
        found = Registry()

        found.discover()

        assert found.timeline("trial") is Trial.definition

    def test_leaves_classes_declared_elsewhere(self):
        """Those of the tests, for example."""
        found = Registry()

        found.discover()

        assert Shipping.definition not in list(found)
        assert __name__ not in {definition.cls.__module__ for definition in found}

    @pytest.mark.parametrize("home", ["project.accounts.timelines", "project.accounts.timelines.longer"])
    def test_finds_what_inherits_from_a_timeline_and_what_is_in_a_submodule(self, home):
        made = type("LongerTrial", (Trial,), {"__module__": home, "starts_on": (), "exits": {}})
        found = Registry()

        found.discover()
        name = found.timeline("longer_trial").cls.__name__

        assert name == made.__name__
        del made, found
        gc.collect()  # No later discovery finds it.

    def test_leaves_a_module_whose_name_only_begins_alike(self):
        made = type("LongerTrial", (Trial,), {"__module__": "project.accounts.timelines_of_old"})
        found = Registry()

        found.discover()

        assert made.definition.name == "longer_trial"
        with pytest.raises(UnknownTimeline):
            found.timeline("longer_trial")

    def test_finds_the_same_when_repeated(self):
        found = Registry()
        found.discover()
        first = list(found)

        found.discover()

        assert list(found) == first

    def test_takes_the_last_of_what_a_reload_declared_again(self, monkeypatch):
        home = ModuleType("project.accounts.timelines.reloaded")
        monkeypatch.setitem(sys.modules, home.__name__, home)
        found, body = Registry(), {"__module__": home.__name__, "starts_on": (), "exits": {}}
        home.Reloaded = old = type("Reloaded", (Trial,), body)
        found.discover()

        home.Reloaded = type("Reloaded", (Trial,), body)
        found.discover()
        found.discover()

        assert found.timeline("reloaded").cls is home.Reloaded is not old
        del home.Reloaded, old, found
        gc.collect()  # No later discovery finds it.

    def test_has_been_done_at_start(self):
        assert registry.timeline(Trial) is Trial.definition


class TestRegister:
    def test_gives_the_class_back(self):
        assert Registry().register(Sweep) is Sweep

    def test_takes_the_same_class_again(self, known):
        known.register(Sweep)

        assert len(list(known)) == 2

    def test_refuses_another_class_of_the_same_name(self, known):
        other = declare(name="sweep", entity="testapp.Order")

        with pytest.raises(DefinitionError, match=r"Wrong: has the name 'sweep', as tests\.test_registry\.Sweep has"):
            known.register(other)

        assert known.timeline("sweep").cls is Sweep

    def test_refuses_another_class_that_is_called_as_a_known_one_and_has_not_taken_its_place(self, known):
        other = type("Sweep", (Timeline,), {"__module__": __name__, "sweep": vars(Sweep)["sweep"]})

        with pytest.raises(DefinitionError, match=r"Sweep: has the name 'sweep', as tests\.test_registry\.Sweep has"):
            known.register(other)

    @pytest.mark.parametrize("entity", ["testapp.Ordre", "tset.Order"])
    def test_refuses_an_entity_that_is_not_installed(self, entity):
        with pytest.raises(DefinitionError, match=f"Wrong: has entity = '{entity}', which is no installed model"):
            Registry().register(declare(entity=entity))

    @pytest.mark.parametrize("entity", ["testapp.Ordre", "tset.Order", "testap.order", "accounts.Order"])
    def test_names_the_model_that_is_meant(self, entity):
        with pytest.raises(DefinitionError, match=r"no installed model\. Did you mean 'testapp\.Order'\?$"):
            Registry().register(declare(entity=entity))

    @pytest.mark.parametrize("entity", ["testapp.Zebra", "nobody.Nothing"])
    def test_says_how_a_model_is_named_where_none_is_alike(self, entity):
        with pytest.raises(DefinitionError, match=r"Use \"app_label\.Model\" of an installed app\.$"):
            Registry().register(declare(entity=entity))

    def test_does_not_mean_a_proxy(self):
        with pytest.raises(DefinitionError) as refused:
            Registry().register(declare(entity="testapp.OrderProxi"))

        assert "testapp.OrderProxy" not in str(refused.value)

    def test_refuses_a_proxy_and_names_its_model(self):
        with pytest.raises(DefinitionError, match=r"has a proxy as entity.*Name 'testapp\.Order'"):
            Registry().register(declare(entity="testapp.OrderProxy"))

    def test_refuses_a_model_that_is_swapped_and_names_the_setting(self):
        with pytest.raises(
            DefinitionError, match=r"'auth\.User', for which 'accounts\.User'.*settings\.AUTH_USER_MODEL"
        ):
            Registry().register(declare(entity="auth.User"))

    def test_refuses_what_the_model_does_not_bear_out(self):
        with pytest.raises(DefinitionError, match=r"time_zone = 'tz', which testapp\.order does not have"):
            Registry().register(declare(entity="testapp.Order", time_zone="tz"))

    def test_refuses_an_entity_whose_key_has_several_columns(self):
        with pytest.raises(DefinitionError, match=r"whose key has several columns.*a key of one column"):
            Registry().register(declare(entity="testapp.Booking"))

    def test_takes_the_entity_in_any_case(self):
        made = Registry()

        made.register(declare(entity="testapp.oRDER"))

        assert made.knows("testapp.order")

    def test_leaves_out_what_it_refused(self):
        made = Registry()

        with pytest.raises(DefinitionError):
            made.register(declare(entity="testapp.Ordre"))

        assert list(made) == []


class TestReplaced:
    def test_knows_only_these_within_the_block(self, known):
        with known.replaced(Shipping):
            within = [definition.name for definition in known]

        assert within == ["shipping"]
        assert [definition.name for definition in known] == ["shipping", "sweep"]

    def test_takes_what_it_knows_without_looking_at_models_again(self, known):
        told = []

        def note(sender, **_given):
            told.append(sender)

        registered.connect(note, sender=known)
        with known.replaced(Sweep, Shipping):
            within = [definition.name for definition in known]

        assert (within, told) == (["sweep", "shipping"], [])

    def test_lets_a_name_stand_for_another_class(self, known):
        other = declare(name="sweep", entity="testapp.Order")

        with known.replaced(other):
            within = known.timeline("sweep").cls

        assert (within, known.timeline("sweep").cls) == (other, Sweep)

    def test_gives_back_after_an_error_too(self, known):
        with pytest.raises(KeyError), known.replaced():
            raise KeyError

        assert known.timeline("sweep") is Sweep.definition

    def test_gives_back_when_a_class_is_refused(self, known):
        with pytest.raises(DefinitionError), known.replaced(Shipping, declare(name="shipping")):
            pass

        assert [definition.name for definition in known] == ["shipping", "sweep"]


class TestTimeline:
    @pytest.mark.parametrize("timeline", ["shipping", Shipping])
    def test_finds_by_name_and_by_class(self, known, timeline):
        assert known.timeline(timeline) is Shipping.definition

    @pytest.mark.parametrize(
        ("timeline", "meant"), [("shiping", "Did you mean 'shipping'? "), ("", ""), (None, ""), (3, "")]
    )
    def test_lists_what_is_known_when_there_is_none(self, known, timeline, meant):
        with pytest.raises(UnknownTimeline) as caught:
            known.timeline(timeline)

        said = f"timeline: '{timeline}' is not registered. {meant}Known: shipping, sweep."
        assert str(caught.value) == said

        assert caught.value.name == str(timeline)

    @pytest.mark.parametrize("timeline", [Timeline, Trial, int])
    def test_does_not_find_a_class_that_is_not_registered(self, known, timeline):
        with pytest.raises(UnknownTimeline):
            known.timeline(timeline)

    def test_says_so_when_nothing_is_known(self):
        with pytest.raises(UnknownTimeline, match="Known: none"):
            Registry().timeline("trial")


class TestTask:
    def test_finds_the_definition_and_the_task(self, known):
        assert known.task("shipping.ship") == (Shipping.definition, Shipping.ship)

    def test_finds_one_without_a_schedule(self, known):
        assert known.task("shipping.recall") == (Shipping.definition, Shipping.recall)

    @pytest.mark.parametrize("key", ["shipping.sweep", "shipping", "shipping.", ".ship", "trial.remind", "", "a.b.c"])
    def test_lists_what_is_known_when_there_is_none(self, known, key):
        with pytest.raises(UnknownTask) as caught:
            known.task(key)

        said = str(caught.value)
        assert said.startswith(f"task_key: {key!r} is not registered. ")
        assert said.endswith("Known: shipping.recall, shipping.ship, sweep.sweep.")

    def test_says_which_is_meant_when_one_is_like_it(self, known):
        with pytest.raises(UnknownTask, match=r"Did you mean 'shipping\.ship'\?"):
            known.task("shipping.shp")


class TestQuestions:
    def test_in_shadow_are_the_keys_of_a_timeline_that_is(self, known):
        known.register(declare(name="shade", entity="testapp.Order", shadow=True))

        keys = [*known.task_keys(), "shade.gone", "nothing.here", ""]
        assert [key for key in keys if known.in_shadow(key)] == ["shade.go", "shade.gone"]

    def test_task_keys_are_all_in_order(self, known):
        assert known.task_keys() == ["shipping.recall", "shipping.ship", "sweep.sweep"]

    def test_knows_an_entity_only_where_a_timeline_is_about_it(self, known):
        assert known.knows("testapp.order")
        assert known.knows("")
        assert not known.knows("testapp.parcel")

    def test_started_by_creation_where_it_is_declared(self, known):
        assert known.started_by_creation("testapp.order") == [Shipping.definition]
        assert known.started_by_creation("") == []

    def test_ended_by_an_event_of_this_kind_of_entity(self, known):
        assert known.ended_by("order.paid", "testapp.order") == [Shipping.definition]
        assert known.ended_by("order.paid", "") == [Sweep.definition]
        assert known.ended_by("order.placed", "testapp.order") == []

    def test_following_fields_where_its_times_depend_on_them(self, known):
        assert known.following("testapp.order") == [Shipping.definition]
        assert known.following("") == []


class TestRegisterAbstract:
    def test_refuses_a_class_that_only_lends_its_tasks(self):
        class Base(Timeline, abstract=True):
            @task()
            def begin(self): ...

        with pytest.raises(DefinitionError, match="Base: is abstract"):
            Registry().register(Base)


class Outside(Timeline, abstract=True):
    """Whose tasks workers of others run."""

    name = "outside"
    _elsewhere = True

    @classmethod
    def _when_lost(cls, write, *, now):
        return (write, now)


class TestElsewhere:
    @pytest.fixture
    def known(self):
        Outside.definition = Definition(
            cls=Outside, name="outside", label="", starts_on=(), exits={}, tasks={}, steps={}, shadow=False
        )
        known = Registry()
        known.register(Outside)
        known.register(Sweep)
        return known

    def test_has_tasks_of_any_name_that_no_worker_of_ours_takes(self, known):
        assert known.task_keys() == ["sweep.sweep"]
        assert known.elsewhere() == ["outside."]
        assert [known.is_elsewhere(key) for key in ("outside.any", "sweep.sweep", "gone.any")] == [True, False, False]

    def test_says_what_becomes_of_a_lost_attempt(self, known):
        told = [known.when_lost(key, "write", now="now") for key in ("outside.any", "sweep.sweep", "gone.any")]

        assert told == [("write", "now"), "write", "write"]
