"""Migrations run beside processes that go on working."""

import pytest
from django.db import migrations
from django.db.migrations.loader import MigrationLoader

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
        apart = migrations.CreateModel | migrations.AlterField  # A new one, and choices: databases know none.
        there = [known for known in self.operations(name) if not isinstance(known, apart)]

        assert len({known.model_name for known in there}) <= 1

    def test_lock_nobody_out_who_reads_while_an_index_is_made(self, name):
        kinds = {type(known) for known in self.operations(name)}

        assert migrations.AddIndex not in kinds or kinds == {migrations.AddIndex}
