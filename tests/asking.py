"""
Which tests are asked on which database, and how many of their cases: the whole rule, in this one place.

A test is asked on SQLite and on PostgreSQL where the database could decide its answer: SQL of ours, locks, isolation,
constraints, triggers, plans, JSON and times, numbers of statements. What stands above that is asked on one of them: its words,
its rights and its pictures are made of answers that the rooms below it have given on both. A file or folder that is named
nowhere here is asked on both; so a newcomer's test is.

Processes that tests start are forked from one that has all loaded, where nobody can tell that from a start: see
``tests/forking.py``.

``WHOLE=1``, which ``make tests-whole`` sets, asks everything on both, but for what makes a database of its own, with all cases.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

Case = TypeVar("Case")

WHOLE: Final = "WHOLE" in os.environ
# Asked on SQLite alone, always: they make a database of their own, or need none.
OWN: Final = [
    "benchmarks",
    "faults/test_check.py",
    "faults/test_rules.py",
    "faults/test_rules_of_machines.py",
    "project/test_booking.py",
    "project/test_demo.py",
    "test_installed.py",
    "test_release.py",
]
# Asked on SQLite alone: words, rights, documents, pictures and pure rules.
ON_SQLITE: Final = [
    "admin",
    "api",
    "browser",
    "calendar",
    "definition",
    "management/test_draw.py",
    "management/test_install_beat.py",
    "management/test_languages.py",
    "metrics/test_views.py",
    "models/test_migrations.py",
    "planning",
    "project/test_portal_views.py",
    "reading/test_languages.py",
    "reading/test_machine_pictures.py",
    "reading/test_mermaid.py",
    "reading/test_timeline_pictures.py",
    "test_asking.py",
    "test_changelog.py",
    "test_conf.py",
    "test_exceptions.py",
    "test_forking.py",
    "test_lifecycle.py",
    "test_locale.py",
    "test_mirror.py",
    "test_payloads.py",
    "test_public.py",
    "test_pytest_plugin.py",
    "test_reasons.py",
    "test_registry.py",
    "test_reliability.py",
    "test_starting.py",
    "timing",
    "webhooks/test_admin.py",
    "webhooks/test_guarding.py",
]
# Of these folders, on both all the same: lists, searches, counts and sums, and with them each page and each list once.
ON_BOTH: Final = [
    "admin/test_bulk.py",
    "admin/test_dead.py",
    "admin/test_entity.py",
    "admin/test_finding.py",
    "admin/test_health.py",
    "admin/test_hours.py",
    "admin/test_inventory.py",
    "admin/test_limits.py",
    "admin/test_list.py",
    "admin/test_machines.py",
    "admin/test_matching.py",
    "admin/test_owning.py",
    "admin/test_paging.py",
    "admin/test_people.py",
    "admin/test_plans.py",
    "admin/test_standing.py",
    "admin/test_task.py",
    "admin/test_trying.py",
    "api/test_bulk.py",
    "api/test_dead_letters.py",
    "api/test_repeating_at_once.py",
    "api/test_steps.py",
    "api/test_tasks.py",
    "api/test_timelines.py",
    "calendar/test_tokens.py",
]
# Asked on PostgreSQL alone: what goes through Celery and a broker, and requests made up from the schema of the API.
ON_POSTGRESQL: Final = [
    "api/test_fuzzing.py",
    "tasks",
]


def is_asked(path: str, vendor: str, *, whole: bool = WHOLE) -> bool:
    """
    Tell whether the tests of a file are asked on a database.

    Args:
        path: Of the file, below ``tests``.
        vendor: ``sqlite`` or ``postgresql``.
        whole: Whether everything is asked on both.
    """
    if _is_in(path, OWN):
        return vendor == "sqlite"
    if whole or path in ON_BOTH:
        return True
    if _is_in(path, ON_POSTGRESQL):
        return vendor == "postgresql"
    return vendor == "sqlite" or not _is_in(path, ON_SQLITE)


def sample(cases: Sequence[Case], every: int, *, whole: bool = WHOLE) -> list[Case]:
    """Take the first of the cases and each so-manieth after it; all of them, if everything is asked."""
    return list(cases if whole else cases[::every])


def _is_in(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
