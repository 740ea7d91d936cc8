"""Migrations run beside processes that go on working."""

import pytest
from django.db import migrations
from django.db.migrations.loader import MigrationLoader

from timeline.migrations._constraints import AddUniqueIndex, LookAtRows

BEFORE = "0011"  # What came earlier was never run beside anything.


def later_ones():
    loader = MigrationLoader(None)
    return sorted(name for app, name in loader.disk_migrations if app == "timeline" and name >= BEFORE)


@pytest.mark.parametrize("name", later_ones())
class TestLaterOnes:
    def operations(self, name):
        return MigrationLoader(None).disk_migrations["timeline", name].operations

    def test_change_one_table_that_is_there_each(self, name):
        """A writer holds some tables and wants others: with two of them locked one after the other, it is a deadlock."""
        # A new one, choices and options, which databases know none of, and the way back.
        apart = migrations.CreateModel | migrations.AlterField | migrations.AlterModelOptions | migrations.RunPython
        apart |= LookAtRows  # Locks nobody out.
        there = [known for known in self.operations(name) if not isinstance(known, apart)]

        assert len({known.model_name for known in there}) <= 1

    def test_compute_nothing_on_the_way(self, name):
        computed = [known for known in self.operations(name) if isinstance(known, migrations.RunPython)]

        assert all(known.code is migrations.RunPython.noop for known in computed)

    def test_lock_nobody_out_who_reads_while_rows_are_looked_at(self, name):
        """PostgreSQL reads the whole table for a constraint, and nobody else does meanwhile."""
        kinds = {type(known) for known in self.operations(name)}

        assert migrations.AddConstraint not in kinds
        assert LookAtRows not in kinds or kinds == {LookAtRows}

    def test_lock_nobody_out_who_reads_while_an_index_is_made(self, name):
        kinds = {type(known) for known in self.operations(name)}

        indexes = {migrations.AddIndex, AddUniqueIndex}
        assert not kinds & indexes or kinds <= indexes
