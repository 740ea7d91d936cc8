"""The built wheel, and what README says of adding it to a project on SQLite."""

from __future__ import annotations

import zipfile
from email import message_from_bytes
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement

import timeline
from tests.followed import is_shown, plain
from tests.new_project import steps
from tests.packages import PIP, ROOT, copy_of_source, run


def files_of(wheel):
    """Its files, each with what is in it."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def metadata_of(wheel):
    """What it says of itself."""
    return next(message_from_bytes(text) for name, text in files_of(wheel).items() if name.endswith("/METADATA"))


def needs(wheel, extras):
    """What it needs with these extras, and what that needs in turn, as it is installed here: who says it, and what."""
    asked = [("", metadata_of(wheel).get_all("Requires-Dist"), extras)]
    seen = set()
    while asked:
        name, lines, wanted = asked.pop()
        for requirement in map(Requirement, lines or ()):
            if (name, str(requirement)) in seen or not applies(requirement, wanted):
                continue
            seen.add((name, str(requirement)))
            yield name, requirement
            if requirement.name != metadata_of(wheel)["Name"]:
                asked.append((requirement.name, requires(requirement.name), requirement.extras))


def applies(requirement, extras):
    """Whether it is asked for, with these extras."""
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras or {""})


class TestWheel:
    def test_holds_the_package_alone_with_all_it_needs(self, wheel):
        names = files_of(wheel)

        tops = {name.split("/")[0] for name in names}
        assert {top for top in tops if not top.endswith(".dist-info")} == {"timeline"}
        assert "timeline/py.typed" in names
        assert "timeline/migrations/0001_initial.py" in names
        sources = {f"timeline/sql/{file.name}" for file in (ROOT / "timeline" / "sql").glob("*.sql")}
        assert sources <= set(names)
        for folder in ("templates", "static", "locale"):
            files = [file for file in (ROOT / "timeline" / folder).rglob("*") if file.is_file()]
            assert {str(file.relative_to(ROOT)) for file in files} <= set(names)
            assert files

    def test_has_nothing_of_an_earlier_build(self, wheel, tmp_path):
        """A file that was deleted since, and lies about in ``build``, is left there. The sdist gives the same wheel."""
        source = copy_of_source(tmp_path)
        stale = source / "build" / "lib" / "timeline" / "stale.py"
        stale.parent.mkdir(parents=True)
        stale.touch()

        run(*PIP, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", tmp_path, source)

        assert files_of(next(tmp_path.glob("*.whl"))) == files_of(wheel)

    def test_is_of_the_version_that_the_code_says(self, wheel):
        assert metadata_of(wheel)["Version"] == timeline.__version__
        assert wheel.name.split("-")[1] == timeline.__version__
        assert timeline.__version__ not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


class TestExtras:
    @pytest.mark.parametrize(("extras", "goes"), [({"api", "celery", "postgres", "redis"}, True), ({"beat"}, False)])
    def test_go_with_each_django_but_that_of_beat(self, wheel, extras, goes):
        """django-celery-beat 2.9 would take a host from Django 6.1 to 6.0, so it comes only when asked for."""
        bounds = {
            name: requirement.specifier for name, requirement in needs(wheel, extras) if requirement.name == "Django"
        }

        assert len(bounds) > 1
        assert all("6.1" in specifier for specifier in bounds.values()) == goes


class TestAddItToYourProject:
    def test_lets_a_timeline_run(self, new_project):
        """Block after block, with a worker; the examples in Python are run in one go, as in one shell."""
        *before, last = steps("Add it to your project")
        [ask] = [step for step in before if "timeline_explain" in step.text]
        [shown] = [step.text for step in before if step.language == "text"]
        examples = [step.text for step in before if step.place.startswith("Shell")] + [last.text]

        for step in before[: before.index(ask)]:
            if step.text not in examples:
                new_project.follow(step)
        new_project.shell("".join(examples))
        completed = new_project.wait_until_completed("2", "trial.remind", "trial.expire", "trial.look_again")

        assert len(examples) == 2
        assert completed == ["trial.remind", "trial.expire", "trial.look_again"]
        assert is_shown(plain(shown), plain(new_project.follow(ask)))
        assert "no issues" in new_project.run("python", "manage.py", "check", "--database", "default")
        assert new_project.stop() == [0]
