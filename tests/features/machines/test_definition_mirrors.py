"""A mirror that does not fit is refused when the site starts, with the remedy."""

import pytest
from django.apps import apps
from django.db import models
from django.test.utils import isolate_apps

from tests.testapp.models import Leg
from tests.trips import Travel
from timeline.exceptions import DefinitionError
from timeline.features.machines.rules import field_problems, shared_problems
from timeline.models import StateField, known_states
from timeline.registry import registry
from timeline.testing import only_timelines


def declared(**options):
    return type("Tour", (Travel,), {"__module__": __name__, **options})


class TestDeclaring:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"mirror": 5}, "Tour: has mirror = 5. Give the name of a field"),
            ({"entity": None}, "Tour: has mirror = 'state', and no entity"),
            ({"key": "number"}, "Tour: has mirror = 'state' and a key: an entity has several runs"),
        ],
    )
    def test_of_what_can_be_none(self, options, said):
        with pytest.raises(DefinitionError, match=said):
            declared(**options)


class TestRegister:
    @pytest.mark.parametrize(
        ("mirror", "said"),
        [
            (
                "nothing",
                r"Tour: has mirror = 'nothing', which testapp.trip does not have. Declare it in the model: noth",
            ),
            ("note", r"Tour: has mirror = 'note', a CharField: .* Declare it in the model: note = StateField\(\)"),
        ],
    )
    def test_of_no_such_field(self, mirror, said):
        with only_timelines(), pytest.raises(DefinitionError, match=said):
            registry.register(declared(mirror=mirror))

    @pytest.mark.parametrize("entity", ["testapp.Trip", "testapp.Cruise"])
    def test_of_a_field_that_shows_another_machine(self, entity):
        with only_timelines(Travel), pytest.raises(DefinitionError, match="in which the machine 'travel' shows its st"):
            registry.register(declared(entity=entity, name="tour"))

    def test_again_is_no_other_machine(self):
        with only_timelines(Travel):
            registry.register(Travel)


class TestFieldProblems:
    @isolate_apps("tests.testapp")
    @pytest.mark.parametrize(
        ("field", "said"),
        [
            (StateField(max_length=8), "which has 8 characters. Give it max_length=9"),
            (StateField(null=True), "which may be NULL. Remove null=True"),
        ],
    )
    def test_of_a_field_that_does_not_hold_it(self, field, said):
        model = type("Tour", (models.Model,), {"__module__": "tests.testapp.models", "state": field})

        [(problem, remedy)] = field_problems(Travel.definition, model)

        assert said in f"{problem} {remedy}"

    @isolate_apps("tests.testapp")
    def test_of_a_field_behind_a_link_that_is_no_key(self):
        space = {"__module__": "tests.testapp.models"}
        parent = type("Base", (models.Model,), {**space, "state": StateField()})
        link = models.OneToOneField(parent, models.CASCADE, parent_link=True)
        child = type("Tour", (parent,), {**space, "number": models.AutoField(primary_key=True), "base_link": link})

        [(problem, _remedy)] = field_problems(Travel.definition, child)

        assert "by a link that is not its primary key" in problem
        assert not list(field_problems(Travel.definition, parent))

    @isolate_apps("tests.testapp")
    @pytest.mark.parametrize(
        ("states", "refused"), [(["PLANNED", "UNDER_WAY", "ARRIVED"], ["DELAYED"]), ([*Leg], []), ([*Leg, "LOST"], [])]
    )
    def test_of_a_check_that_refuses_a_state(self, states, refused):
        meta = type("Meta", (), {"constraints": [known_states(states, name="known")]})
        space = {"__module__": "tests.testapp.models", "state": StateField(), "Meta": meta}
        model = type("Tour", (models.Model,), space)

        problems = [problem for problem, _remedy in field_problems(Travel.definition, model)]

        assert problems == [
            f"has mirror = 'state', in which a CHECK of the model refuses the state {state!r}." for state in refused
        ]

    def test_of_one_that_fits(self):
        assert list(field_problems(Travel.definition, apps.get_model("testapp.Trip"))) == []


class TestSharedProblems:
    @isolate_apps("tests.testapp")
    def test_are_none_of_sisters_whose_parent_has_the_column(self):
        space = {"__module__": "tests.testapp.models"}
        parent = type("Tour", (models.Model,), {**space, "state": StateField()})
        ours, theirs = type("Walk", (parent,), dict(space)), type("Ride", (parent,), dict(space))
        other = declared(name="ride").definition

        assert list(shared_problems(Travel.definition, ours, [(other, theirs)])) == []
        assert len(list(shared_problems(Travel.definition, ours, [(other, parent)]))) == 1
