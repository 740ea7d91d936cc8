"""
The Pythons and Djangos that it runs on: ``make matrix``, or ``make matrix ARGS=--list``.

All tests on one pair, the quick part on the others.
"""

from __future__ import annotations

from pathlib import Path

import nox

nox.options.error_on_missing_interpreters = False

WITHOUT_BEAT = {"6.1"}  # django-celery-beat 2.9 says Django < 6.1.


def needs(django: str) -> tuple[str, ...]:
    """What the tests need: all extras that go with this Django, and the tools that developers have beside them."""
    extras = nox.project.load_toml("pyproject.toml")["project"]["optional-dependencies"]
    left_out = {"dev", "beat"} if django in WITHOUT_BEAT else {"dev"}
    tools = [line for line in extras["dev"] if not line.startswith("django-entity-timeline[")]
    return (f".[{','.join(sorted(extras.keys() - left_out))}]", *tools)


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
