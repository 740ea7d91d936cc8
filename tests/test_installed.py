"""The built wheel, and what README says of adding it to a project on SQLite."""

from __future__ import annotations

import zipfile
from email import message_from_bytes
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement

import timeline
from tests.new_project import GIVEN, SIGN_UP, steps
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
    @pytest.mark.parametrize(
        ("extras", "goes"), [({"api", "celery", "demo", "postgres", "redis"}, True), ({"beat"}, False)]
    )
    def test_go_with_each_django_but_that_of_beat(self, wheel, extras, goes):
        """django-celery-beat 2.9 would take a host from Django 6.1 to 6.0, so it comes only when asked for."""
        bounds = {
            name: requirement.specifier for name, requirement in needs(wheel, extras) if requirement.name == "Django"
        }

        assert len(bounds) > 1
        assert all("6.1" in specifier for specifier in bounds.values()) == goes

    def test_that_only_develop_are_all_of_them(self, wheel):
        extras = set(metadata_of(wheel).get_all("Provides-Extra"))

        developing = next(requirement for _name, requirement in needs(wheel, {"dev"}) if "beat" in requirement.extras)
        assert developing.extras == extras - {"dev"}


class TestAddItToYourProject:
    def test_lets_a_timeline_run(self, new_project):
        """Block after block; the examples in Python are run in one go, once the tables are there."""
        *before, work, ask = steps("Add it to your project")
        examples = [step.text for step in before if step.language == "python" and not step.file]

        for step in before:
            if step.text not in examples:
                new_project.follow(step)
        story = new_project.shell(GIVEN + "".join(examples))
        assert "no issues" in new_project.run("python", "manage.py", "check", "--database", "default")
        key = new_project.shell(SIGN_UP)
        new_project.follow(work)
        completed = new_project.wait_until_completed(key, "trial.remind", "trial.expire")

        assert len(examples) == 3
        assert "trial.expire" in story
        assert completed == ["trial.remind", "trial.expire"]
        assert "paid" in new_project.follow(ask)
        assert new_project.stop() == [0]
