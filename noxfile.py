"""
The Pythons and Djangos that it runs on: ``make matrix``, or ``make matrix ARGS=--list``.

All tests on one pair, the quick part on the others. The newest pair is asked by ``make test-all``, too.
"""

from __future__ import annotations

import os
from pathlib import Path

import nox

nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["full", "short"]

PYTHON, DJANGO = os.environ.get("NEWEST_PYTHON", "3.13"), "6.1"  # The newest pair; the interpreter's name, or its path.

WITHOUT_BEAT = {"6.1"}  # django-celery-beat 2.9 says Django < 6.1.


def needs(django: str) -> tuple[str, ...]:
    """What the tests need: all extras that go with this Django, and the tools that developers have beside them."""
    extras = nox.project.load_toml("pyproject.toml")["project"]["optional-dependencies"]
    groups = {"demo", "test", "dev"}
    left_out = groups | {"docs"} | ({"beat"} if django in WITHOUT_BEAT else set())
    tools = [line for group in groups for line in extras[group] if not line.startswith("django-entity-timeline[")]
    return (f".[{','.join(sorted(extras.keys() - left_out))}]", *sorted(tools))


def install(session: nox.Session, django: str) -> None:
    """Install the package and what its tests need: this Django, everything else as pinned."""
    pins = Path("requirements.txt").read_text(encoding="utf-8").splitlines()
    constraints = Path(session.create_tmp()) / "constraints.txt"
    constraints.write_text("\n".join(pin for pin in pins if not pin.startswith("Django==")), encoding="utf-8")
    session.install("--constraint", str(constraints), f"Django=={django}.*", "--editable", *needs(django))
    session.run("python", "manage.py", "makemigrations", "--check", "--dry-run", "--settings", "tests.settings")


@nox.session(python="3.11")
def full(session: nox.Session) -> None:
    """All tests, on SQLite and on PostgreSQL."""
    install(session, "5.2")
    for database in ("sqlite", "postgresql"):
        session.run("pytest", *session.posargs, env={"TEST_DB": database})


@nox.session(python=["3.12", "3.13"])
@nox.parametrize("django", ["5.2", "6.0", "6.1"])
def short(session: nox.Session, django: str) -> None:
    """All tests on SQLite but those that start processes or need a broker."""
    install(session, django)
    session.run("pytest", "-m", "not processes", *session.posargs, env={"TEST_DB": "sqlite"})


@nox.session(python=PYTHON, reuse_venv=True)
def newest(session: nox.Session) -> None:
    """The same on the newest pair, many at a time."""
    install(session, DJANGO)
    session.run("pytest", "-m", "not processes and not needs", *session.posargs, env={"TEST_DB": "sqlite"})
