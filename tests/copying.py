"""Make a test database by copying one that is made: that takes a hundredth of what all migrations take."""

from __future__ import annotations

import shutil

from django.conf import settings
from django.db import connections


def copy_when_made(first: str, second: str) -> None:
    """
    When ``second`` is to be made for the tests, copy ``first``, which is made before it; if that is not, migrate it as ever.

    Args:
        first, second: Aliases of two databases with the same settings but for their names.
    """
    creation = connections[second].creation
    migrated = creation.create_test_db
    expected = str(connections[first].creation._get_test_db_name())

    def copied(verbosity: int = 1, autoclobber: bool = False, serialize: bool = False, keepdb: bool = False) -> str:
        given = connections[first]
        source, name = given.settings_dict["NAME"], creation._get_test_db_name()
        if serialize or keepdb or str(source) != expected:
            return str(migrated(verbosity, autoclobber, serialize, keepdb))
        given.close()  # PostgreSQL copies only what nobody is connected to; SQLite writes all into its file.
        if given.vendor == "postgresql":
            with creation._nodb_cursor() as cursor:
                quote = connections[second].ops.quote_name
                cursor.execute(f"DROP DATABASE IF EXISTS {quote(name)}")
                cursor.execute(f"CREATE DATABASE {quote(name)} TEMPLATE {quote(source)}")
        else:
            shutil.copyfile(source, name)
        connections[second].close()
        settings.DATABASES[second]["NAME"] = connections[second].settings_dict["NAME"] = name
        connections[second].ensure_connection()
        return str(name)

    creation.create_test_db = copied
