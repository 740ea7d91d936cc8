"""
A part of Wagtail's own tests with ours installed.

They bring a database of their own, SQLite in memory, so once is enough.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from typing import NamedTuple

from seeing import folder, seen

LABELS = (
    "wagtail.tests.test_page_model",
    "wagtail.tests.actions",
    "wagtail.tests.test_workflow",
    "wagtail.tests.test_revision_model",
    "wagtail.tests.test_reference_index",
)


class Outcome(NamedTuple):
    """
    What became of the tests.

    Args:
        ran: How many.
        failed: Names of those that did not pass.
        counts: Names of those that failed because they counted other queries than before.
    """

    ran: int
    failed: set[str]
    counts: set[str]


@cache
def outcome(how: str) -> Outcome:
    """Run them: ``alone``, with a timeline that is ``followed``, or with one that is ``unknown`` meanwhile."""
    log = folder() / f"own-{how}.log"
    with log.open("wb") as written:
        subprocess.run(
            [sys.executable, "-m", "django", "test", *LABELS, "--settings", "own_settings"],
            env={**os.environ, "FOREIGN_OWN": how},
            stdout=written,
            stderr=written,
            check=False,
        )
    said = log.read_text()
    ran = re.search(r"^Ran (\d+) tests", said, re.MULTILINE)
    assert ran, said[-3000:]
    failed, counts = set(), set()
    for part in said.split("=" * 70)[1:]:
        name = part.strip().splitlines()[0].partition(" ")[2]
        failed.add(name)
        if re.search(r"AssertionError: \d+ != \d+ : \d+ queries executed, \d+ expected", part):
            counts.add(name)
    return Outcome(int(ran[1]), failed, counts)


@seen("Wagtail's own tests about pages end as without ours where no timeline is known meanwhile")
def as_without_ours() -> str:
    alone, ours = outcome("alone"), outcome("unknown")

    assert ours.ran == alone.ran > 300
    assert ours.failed == alone.failed, sorted(ours.failed ^ alone.failed)
    return f"{alone.ran} tests, {len(alone.failed)} fail with and without"


@seen("With a timeline that follows a field of all pages, no other fail than those that count queries")
def counting_queries() -> str:
    alone, ours = outcome("alone"), outcome("followed")
    more = ours.failed - alone.failed

    assert ours.ran == alone.ran
    assert more <= ours.counts, sorted(more - ours.counts)
    return f"{len(more)} of {ours.ran} count queries that are ours: {', '.join(sorted(more)) or 'none'}"
