"""
Checks as ``migrate`` runs them, before it migrates: the tables are still those of an earlier version. An error or an exception
there would stop it.
"""

from __future__ import annotations

import pytest
from django.core.checks import ERROR, run_checks

from tests.asking import sample
from tests.upgrading.one_by_one import migrate, names, one_by_one

# Tables of the first version, of 0.1.0, and of versions after which tables and columns came that checks ask.
VERSIONS = ["0001_initial", "0010_causes_of_ad_hoc_rows", *sample(names(), 4)]


class TestChecks:
    def test_let_an_earlier_version_be_migrated(self, fresh, settings):
        settings.TIMELINE = {"SITE": ""}
        stopped = {}
        with one_by_one():
            for version in sorted(set(VERSIONS)):
                migrate(version, using=fresh)
                found = [message for message in run_checks(databases=[fresh]) if message.level >= ERROR]
                stopped |= {version: found} if found else {}

        assert stopped == {}

    @pytest.mark.parametrize("version", ["0010_causes_of_ad_hoc_rows"])
    def test_are_run_again_when_it_has_been(self, fresh, version):
        with one_by_one():
            migrate(version, using=fresh)
        migrate(using=fresh)

        assert [message for message in run_checks(databases=[fresh]) if message.level >= ERROR] == []
