"""What is declared twice in a module or in a class, and what a decorator does not take."""

import importlib
import sys
from textwrap import dedent

import pytest

from timeline import Timeline, step, task
from timeline.exceptions import DefinitionError

CLASS = """
from timeline import Timeline, task

class Trial(Timeline):
    name = "{name}"

    @task()
    def {task}(self):
        return None
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module of a name that nobody else has, and give the name."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def write(source, name="declared_anew"):
        (tmp_path / f"{name}.py").write_text(dedent(source))
        importlib.invalidate_caches()
        made.append(name)
        return name

    yield write
    for name in made:
        sys.modules.pop(name, None)


class TestCheckClassOnce:
    def test_refuses_a_second_class_of_one_name(self, module):
        twice = CLASS.format(name="trial", task="remind") + CLASS.format(name="trial", task="expire")

        with pytest.raises(DefinitionError, match=r"^Trial: is declared twice in declared_anew: .* another name"):
            importlib.import_module(module(twice))

    def test_refuses_it_under_another_name_of_the_timeline(self, module):
        twice = CLASS.format(name="trial", task="remind") + CLASS.format(name="other", task="expire")

        with pytest.raises(DefinitionError, match="is declared twice"):
            importlib.import_module(module(twice))

    def test_refuses_a_second_abstract_one(self, module):
        lent = "\nfrom timeline import Timeline\nclass Lent(Timeline, abstract=True):\n    pass\n"

        with pytest.raises(DefinitionError, match=r"^Lent: is declared twice"):
            importlib.import_module(module(lent * 2))

    def test_takes_what_a_reload_declares_again(self, module):
        known = importlib.import_module(module(CLASS.format(name="trial", task="remind")))

        again = importlib.reload(known)

        assert list(again.Trial.definition.tasks) == ["remind"]

    def test_takes_what_is_imported_anew(self, module):
        name = module(CLASS.format(name="trial", task="remind"))
        first = importlib.import_module(name)
        del sys.modules[name]

        assert importlib.import_module(name).Trial is not first.Trial

    def test_takes_what_a_notebook_or_a_doctest_executes_again(self, module):
        name = module(CLASS.format(name="trial", task="remind"))
        scope = dict(vars(importlib.import_module(name)))
        source = CLASS.format(name="trial", task="expire")

        for _time in range(2):
            exec(source, scope)  # noqa: S102 (the test's own text)
            exec(source, vars(sys.modules[name]))  # noqa: S102 (the test's own text)

        assert list(scope["Trial"].definition.tasks) == ["expire"]

    def test_takes_what_functions_declare(self, module):
        factory = """
            from timeline import Timeline, task

            def made(name):
                @task()
                def go(self):
                    return None
                return type("Made", (Timeline,), {"name": name, "go": go})

            first, second = made("first"), made("second")
        """

        known = importlib.import_module(module(factory))

        assert (known.first.definition.name, known.second.definition.name) == ("first", "second")

    def test_takes_a_class_after_an_import_that_failed(self, module):
        name = module(CLASS.format(name="trial", task="remind") + "import no_such_module_at_all")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)
        module(CLASS.format(name="trial", task="remind"), name)

        importlib.import_module(name)


class TestCheckMethodOnce:
    def test_refuses_a_second_task_of_one_name(self):
        with pytest.raises(DefinitionError, match=r"^Trial\.remind: is declared twice"):

            class Trial(Timeline):
                @task()
                def remind(self):
                    return 1

                @task()
                def remind(self):  # noqa: F811 (what is refused)
                    return 2

    @pytest.mark.parametrize("kinds", [(step, step), (task(), step), (step, task())], ids=["steps", "step", "task"])
    def test_refuses_a_step_and_a_task_of_one_name(self, kinds):
        first, second = kinds
        with pytest.raises(DefinitionError, match=r"^Trial\.load: is declared twice"):

            class Trial(Timeline):
                @first
                def load(self):
                    return 1

                @second
                def load(self):  # noqa: F811 (what is refused)
                    return 2

    def test_takes_one_that_an_inherited_class_has(self):
        class Base(Timeline):
            @task()
            def remind(self):
                return 1

        class Trial(Base):
            @task()
            def remind(self):
                return 2

        assert Trial().remind() == 2

    def test_takes_one_in_place_of_a_plain_method(self):
        class Trial(Timeline):
            def remind(self):
                return 1

            @task()
            def remind(self):  # noqa: F811 (what is refused)
                return 2

        assert Trial().remind() == 2


class TestRefuseKeywords:
    @pytest.mark.parametrize(
        ("given", "meant"), [("onlyif", "only_if"), ("unles", "unless"), ("expire", "expires"), ("Retry", "retry")]
    )
    def test_of_a_task_name_class_and_method_and_what_is_meant(self, given, meant):
        with pytest.raises(DefinitionError) as caught:

            class Trial(Timeline):
                @task(**{given: None})
                def remind(self):
                    return None

        assert (caught.value.timeline, caught.value.method) == ("Trial", "remind")
        assert caught.value.problem == f"has {given}=, which @task does not take."
        assert caught.value.remedy == f"Did you mean {meant!r}?"

    def test_of_a_step_name_them_too(self):
        with pytest.raises(DefinitionError, match=r"^Trial\.load: has atomc=, which @step .* Did you mean 'atomic'"):

            class Trial(Timeline):
                @step(atomc=False)
                def load(self):
                    return None

    def test_list_all_where_none_is_alike(self):
        with pytest.raises(DefinitionError, match=r"has colour=.*Known: aside, atomic, bulk"):

            class Trial(Timeline):
                @task(colour="red")
                def remind(self):
                    return None

    def test_are_seen_where_nothing_is_decorated(self):
        with pytest.raises(DefinitionError, match=r"^Trial\.remind: is decorated without parentheses"):

            class Trial(Timeline):
                remind = task(onlyif=None)
