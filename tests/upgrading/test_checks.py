"""
Checks as ``migrate`` runs them, before it migrates: the tables are still those of an earlier version. An error or an exception
there would stop it.
"""

from __future__ import annotations

from django.core.checks import ERROR, run_checks

from tests.asking import sample
from tests.upgrading.one_by_one import migrate, names, one_by_one

# Tables of the first version, of 0.1.0, and of versions after which tables and columns came that checks ask.
VERSIONS = sorted({"0001_initial", "0010_causes_of_ad_hoc_rows", *sample(names(), 4)})


def errors(using: str) -> list[str]:
    return [str(message) for message in run_checks(databases=[using]) if message.level >= ERROR]


class TestChecks:
    def test_let_an_earlier_version_be_migrated(self, fresh):
        with one_by_one():
            for version in VERSIONS:
                migrate(version, using=fresh)

                assert errors(fresh) == [], version

    def test_find_nothing_wrong_when_it_has_been(self, fresh):
        with one_by_one():
            migrate("0010_causes_of_ad_hoc_rows", using=fresh)
        migrate(using=fresh)

        assert errors(fresh) == []
