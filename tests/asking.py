"""
Which tests are asked in which size of run, and on which database: the whole rule, in this one place.

Three sizes, by ``SIZE`` in the environment:

``quick``
    Rules alone, which need no database, or SQLite a little: ``make quick``.
``test``
    Each test once, but for those that take long, start processes or need tools: what has a database on PostgreSQL, and on
    SQLite what could go otherwise there. Of processes, one of each kind is killed. ``make test``.
``all``
    Everything, on both databases where the database could decide the answer: ``make test-all``, and ``pytest`` by itself.

What stands above the store is asked on PostgreSQL alone: its words, rights and pictures are made of answers that the rooms
below it have given on both. A file or folder that is named nowhere here is asked on both, and in ``test`` on PostgreSQL; so a
newcomer's test is.

The tests of a feature lie in one folder, and a file of it is asked as the room is that its name begins with:
``features/limits/test_engine_places.py`` as ``engine``. It may be named here by its own path as well.

Processes that tests start are forked from one that has all loaded, where nobody can tell that from a start: see
``tests/forking.py``.

``WHOLE=1`` takes all cases where otherwise a sample is taken, and all files on both databases.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

Case = TypeVar("Case")

WHOLE: Final = "WHOLE" in os.environ
SIZE: Final = os.environ.get("SIZE", "all")
# Asked on SQLite alone, always, and of ``all`` alone: they make a database of their own, start processes, or need a browser.
OWN: Final = [
    "benchmarks",
    "browser",
    "faults/test_check.py",
    "faults/test_rules.py",
    "faults/test_rules_of_machines.py",
    "project/test_booking.py",
    "project/test_demo.py",
    "test_forking.py",
    "test_installed.py",
    "test_release.py",
]
# Pure rules: asked on SQLite alone, in each size.
RULES: Final = [
    "definition",
    "management/test_draw.py",
    "planning",
    "features/machines/test_reading_pictures.py",
    "reading/test_mermaid.py",
    "reading/test_timeline_pictures.py",
    "test_asking.py",
    "test_changelog.py",
    "test_conf.py",
    "test_exceptions.py",
    "test_ids.py",
    "test_lifecycle.py",
    "test_locale.py",
    "test_payloads.py",
    "test_prose.py",
    "test_public.py",
    "test_reasons.py",
    "test_registry.py",
    "test_reliability.py",
    "test_suggestions.py",
    "timing",
    "webhooks/test_guarding.py",
]
# Asked on SQLite alone, of ``test`` too: texts longer than the columns of PostgreSQL, and the demo, which has that database
# only, and counts its past where nobody else writes (on a server, what others have open would be waited for).
ON_SQLITE: Final = ["admin/test_texts.py", "project/test_demo_page.py", "project/test_demo_past.py", "test_tutorial.py"]
# Asked on PostgreSQL alone: words, rights, documents, made-up requests, and what goes through Celery and a broker.
ON_POSTGRESQL: Final = [
    "admin",
    "api",
    "calendar",
    "management/test_install_beat.py",
    "management/test_languages.py",
    "project/test_portal_views.py",
    "reading/test_languages.py",
    "tasks",
    "test_pytest_plugin.py",
    "webhooks/test_admin.py",
]
# Of these folders, on both all the same: lists, searches, counts and sums, and with them each page and each list once.
ON_BOTH: Final = [
    "features/bulk_actions/test_admin.py",
    "admin/test_dead.py",
    "admin/test_entity.py",
    "admin/test_finding.py",
    "admin/test_health.py",
    "admin/test_hours.py",
    "admin/test_inventory.py",
    "features/limits/test_admin.py",
    "admin/test_list.py",
    "admin/test_machines.py",
    "admin/test_matching.py",
    "features/bulk_actions/test_admin_matching.py",
    "admin/test_owning.py",
    "admin/test_paging.py",
    "admin/test_people.py",
    "admin/test_plans.py",
    "admin/test_standing.py",
    "admin/test_task.py",
    "admin/test_trying.py",
    "api/test_authenticating.py",
    "features/bulk_actions/test_api.py",
    "api/test_dead_letters.py",
    "api/test_repeating_at_once.py",
    "features/steps/test_api.py",
    "api/test_tasks.py",
    "api/test_timelines.py",
    "calendar/test_tokens.py",
]
# Of ``test``, on SQLite as well: what the store writes, what the engine promises, and a story of each feature.
ON_SQLITE_TOO: Final = [
    "engine",
    "stories/test_adopting_machines.py",
    "stories/test_aside.py",
    "features/fan_out/test_story.py",
    "stories/test_follow_ups.py",
    "features/holds/test_story.py",
    "features/limits/test_story.py",
    "stories/test_plan_and_apply.py",
    "stories/test_shadow.py",
    "stories/test_trial.py",
    "stories/test_two_databases.py",
    "features/waits/test_story_of_an_approval.py",
    "features/waits/test_story_before.py",
    "stories/test_webhooks.py",
    "stories/test_machines.py",
    "stories/test_what_if.py",
    "stories/test_windows.py",
    "store",
]
# Left out of ``test``: files, classes and tests that take seconds each. Most are races, or wait until something is given up.
LONG: Final = [
    "api/test_fuzzing.py",
    "definition/test_fingerprints.py::TestCode::test_is_the_same_in_each_process",
    "faults",
    "hostile",
    "live/test_streaming.py",
    "features/fan_out/test_postgresql.py::TestAWorkerThatRecordsBeside",
    "postgresql/test_hanging.py",
    "features/limits/test_postgresql.py::TestRace",
    "postgresql/test_machines.py",
    "features/recurring/test_postgresql.py",
    "postgresql/test_rescuing.py::TestRescueOfWhatAHostHadLocked",
    "postgresql/test_unwritten.py",
    "features/waits/test_postgresql.py",
    "features/waits/test_postgresql_for_others.py",
    "stories/test_dying_before_the_signal.py",
    "stories/test_failures_seen.py",
    "stories/test_from_cron.py::TestTheClock",
    "stories/test_from_cron.py::TestWhileSomethingIsDown",
    "stories/test_from_cron_settlement.py::TestKilled",
    "stories/test_from_cron_settlement.py::TestManyNights",
    "stories/test_from_cron_silence.py",
    "features/limits/test_story_handed_on.py",
    "features/limits/test_story_shared.py",
    "features/rates/test_postgresql_celery.py",
    "features/rates/test_story.py",
    "stories/test_machines_resting.py::TestTheRestOfIt",
    "stories/test_memory.py",
    "tasks/test_pools.py",
    "timing/test_distances.py::TestOfDays",
    "timing/test_distances.py::TestOfMoments",
    "features/recurring/test_timing_slots.py::TestEveryClockChange",
    "webhooks/test_dying.py",
    "webhooks/test_locking.py::TestTwo",
    "webhooks/test_threads.py",
    "worker/test_batch.py",
    "worker/test_side_by_side.py",
]
# Of what starts processes, in ``test``: one kill of each kind, and the demo's stories in small.
KILLS: Final = [
    "project/test_demo.py::TestTold::test_ends_with_a_table_and_a_story",
    "stories/test_crash.py::TestKilledWorker",
    "webhooks/test_dying.py::TestASenderThatIsKilled::test_keeps_nobody_else_waiting_and_what_it_had_is_sent_again_in_order[answered]",
]


def is_asked(path: str, vendor: str, *, size: str = SIZE, whole: bool = WHOLE) -> bool:
    """
    Tell whether the tests of a file are asked on a database.

    Args:
        path: Of the file, below ``tests``.
        vendor: ``sqlite`` or ``postgresql``.
        size: ``quick``, ``test`` or ``all``.
        whole: Whether everything is asked on both, if the size is ``all``.
    """
    if _is_in(path, RULES):
        return vendor == "sqlite" or (whole and size == "all")
    if size == "quick":
        return False
    if size == "test" and _is_in(path, [*LONG, *OWN]) and not any(kill.startswith(f"{path}::") for kill in KILLS):
        return False
    if _is_in(path, OWN):
        return vendor == "sqlite"
    if path in ON_SQLITE:
        return vendor == "sqlite"
    if size == "test":
        return vendor == "postgresql" or _is_in(path, ON_SQLITE_TOO)
    return whole or vendor == "postgresql" or path in ON_BOTH or not _is_in(path, ON_POSTGRESQL)


def room_of(path: str) -> str:
    """The room that a feature's file is named after, ``engine`` of ``features/limits/test_engine_places.py``; else nothing."""
    match path.split("/"):
        case ["features", _feature, file] if file.startswith("test_"):
            return file.removesuffix(".py").split("_")[1]
    return ""


def is_entered(folder: str, *, size: str = SIZE) -> bool:
    """Tell whether anything in a folder may be asked in a size. Else its modules are not imported, which may need tools."""
    wanted = RULES if size == "quick" else KILLS
    return (
        size == "all"
        or _is_in(folder, ["features"])  # Its files are asked as those of many rooms.
        or any(place.startswith(f"{folder}/") for place in wanted)
        or (size == "quick" and _is_in(folder, RULES))
        or (size == "test" and not _is_in(folder, [*LONG, *OWN]))
    )


def is_left_out(test: str, marks: Sequence[str], *, size: str = SIZE) -> bool:
    """
    Tell whether a test of a file that is asked is left out of a size, since it takes long or needs what not everybody has.

    Args:
        test: ``folder/test_file.py::Class::test``, below ``tests``.
        marks: The names of its marks.
        size: As for ``is_asked``.
    """
    if size == "all":
        return False
    if _is_in(test, KILLS):
        return False
    return _is_in(test, LONG) or not {"needs", "plans", "processes"}.isdisjoint(marks)


def sample(cases: Sequence[Case], every: int, *, whole: bool = WHOLE) -> list[Case]:
    """Take the first of the cases and each so-manieth after it; all of them, if everything is asked."""
    return list(cases if whole else cases[::every])


def _is_in(path: str, places: Sequence[str]) -> bool:
    return room_of(path.split("::", maxsplit=1)[0]) in places or any(
        path == place or path.startswith((f"{place}/", f"{place}::", f"{place}[")) for place in places
    )
