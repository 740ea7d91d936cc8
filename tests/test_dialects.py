"""The dialects: which one a database has, what each is given, and that no other module tells databases by their names."""

from __future__ import annotations

import ast
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

import timeline
from timeline.dialects import POSTGRESQL, SQLITE, dialect_of, is_by_psycopg3, known_among

PACKAGE = Path(timeline.__file__).parent
DIALECTS = [POSTGRESQL, SQLITE]
NAMES = {dialect.vendor for dialect in DIALECTS}
each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=[dialect.vendor for dialect in DIALECTS])


class TestDialectOf:
    @pytest.mark.parametrize("using", ["default", "other"])
    def test_goes_by_the_vendor(self, using):
        assert dialect_of(using).vendor == connection.vendor

    def test_refuses_what_we_do_not_run_on(self, foreign_database):
        with pytest.raises(ImproperlyConfigured, match="does not run on mysql"):
            dialect_of(foreign_database)


class TestKnownAmong:
    def test_passes_over_what_we_do_not_run_on(self, foreign_database):
        found = list(known_among(["other", foreign_database, "default"]))

        assert found == [("other", dialect_of("other")), ("default", dialect_of("default"))]


class TestIsByPsycopg3:
    @pytest.mark.only_postgresql
    def test_goes_by_the_driver(self):
        assert is_by_psycopg3(connection) is (connection.Database.__name__ == "psycopg")

    @pytest.mark.only_sqlite
    def test_is_not_so_on_sqlite(self):
        """Though its module has adapters, too."""
        assert hasattr(connection.Database, "adapters")
        assert not is_by_psycopg3(connection)


class TestSql:
    @each_dialect
    def test_is_sent_without_its_lines_of_comment(self, dialect):
        text = dialect.sql("transition")

        assert text.lstrip().startswith(("WITH", "UPDATE"))
        assert not [line for line in text.splitlines() if line.lstrip().startswith("--")]

    @each_dialect
    def test_has_the_words_of_the_database_where_both_are_told_alike(self, dialect):
        text = dialect.sql("columns")

        assert f"sent_at = CASE change.to_state WHEN 'pending' THEN {dialect.words['machine_now']} " in text
        assert not [name for name in dialect.words if f"{{{name}}}" in text]

    def test_has_the_sets_of_the_lifecycle(self):
        assert "IN ('cancelled', 'completed', 'discarded')" in SQLITE.sql("open_of_runs")

    def test_fails_where_there_is_none(self):
        with pytest.raises(FileNotFoundError):
            SQLITE.sql("break_off")

    def test_leaves_no_file_that_no_dialect_reads(self):
        suffixes = {path.name.partition(".")[2] for path in (PACKAGE / "sql").iterdir()}

        assert suffixes == {"sql", *(f"{name}.sql" for name in NAMES)}


class TestParameters:
    def test_are_arrays(self):
        assert POSTGRESQL.list_of(text for text in "ab") == ["a", "b"]
        assert POSTGRESQL.entities_of([("l", "1"), ("m", "2")]) == {"labels": ["l", "m"], "ids": ["1", "2"]}

    def test_are_json_where_there_are_no_arrays(self):
        assert SQLITE.list_of(text for text in "ab") == '["a", "b"]'
        assert SQLITE.entities_of([("l", "1"), ("m", "2")]) == {"entities": '[["l", "1"], ["m", "2"]]'}

    def test_are_lengths_of_time(self):
        length = timedelta(seconds=90)

        assert POSTGRESQL.length_of(length) == POSTGRESQL.ago(length) == length

    @pytest.mark.parametrize(("seconds", "text"), [(90, "-90.000"), (0, "+0.000"), (0.25, "-0.250"), (-2, "+2.000")])
    def test_are_seconds_where_there_are_no_lengths_of_time(self, seconds, text):
        length = timedelta(seconds=seconds)

        assert SQLITE.length_of(length) == seconds
        assert SQLITE.ago(length) == f"{text} seconds"


def comparing(source: str) -> list[int]:
    """Lines that ask a connection for its vendor, or name one to compare it with."""

    def is_about_vendors(node: ast.AST) -> bool:
        if isinstance(node, ast.Constant):
            return node.value in {"vendor", *NAMES}
        return isinstance(node, ast.Attribute) and node.attr == "vendor"

    return [node.lineno for node in ast.walk(ast.parse(source)) if is_about_vendors(node)]


class TestNoOtherModule:
    def test_tells_databases_by_their_names(self):
        """But migrations, which are history."""
        others = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "migrations"]
        others.remove(PACKAGE / "dialects.py")

        found = {path: lines for path in others if (lines := comparing(path.read_text(encoding="utf-8")))}

        assert found == {}

    @pytest.mark.parametrize(
        "source",
        [
            'if connections[using].vendor != "postgresql": ...',
            "known = connection.vendor in REST",
            "vendor = getattr(connection, 'vendor')",
            "sql = TEXTS['sqlite']",
            "match kind:\n    case 'sqlite': ...",
        ],
    )
    def test_would_do_so_unseen(self, source):
        assert comparing(source)

    @pytest.mark.parametrize("source", ["'On PostgreSQL alone.'", "dialect_of(using).has_one_writer", "import sqlite3"])
    def test_is_blamed_for_less(self, source):
        assert comparing(source) == []
