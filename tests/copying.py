"""Make a test database by copying one that is made: that takes a hundredth of what all migrations take."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connections


def copy_when_made(first: str, second: str) -> None:
    """
    When ``second`` is to be made for the tests, copy ``first``, which is made before it. If that is not, or cannot be copied,
    migrate ``second`` as ever, and say why on stderr: that takes as long as a hundred tests.

    Args:
        first, second: Aliases of two databases with the same settings but for their names.
    """
    creation = connections[second].creation
    migrated = creation.create_test_db
    expected = str(connections[first].creation._get_test_db_name())

    def copied(verbosity: int = 1, autoclobber: bool = False, serialize: bool = False, keepdb: bool = False) -> str:
        given = connections[first]
        source, name = given.settings_dict["NAME"], creation._get_test_db_name()
        problem = "it is to be kept, or serialized" if serialize or keepdb else ""
        if not problem and str(source) != expected:
            problem = f"{first} is {source}, and was not made as {expected}"
        problem = problem or _copy(first, second, source, name)
        if problem:
            sys.stderr.write(f"The test database {name} is not copied but migrated: {problem}\n")
            return str(migrated(verbosity, autoclobber, serialize, keepdb))
        connections[second].close()
        settings.DATABASES[second]["NAME"] = connections[second].settings_dict["NAME"] = name
        connections[second].ensure_connection()
        return str(name)

    creation.create_test_db = copied


def _copy(first: str, second: str, source: Any, name: Any) -> str:
    """Copy one; what went wrong, or nothing."""
    given = connections[first]
    given.close()  # PostgreSQL copies only what nobody is connected to; SQLite writes all into its file.
    try:
        if given.vendor == "postgresql":
            with connections[second].creation._nodb_cursor() as cursor:
                quote = connections[second].ops.quote_name
                cursor.execute(f"DROP DATABASE IF EXISTS {quote(name)}")
                cursor.execute(f"CREATE DATABASE {quote(name)} TEMPLATE {quote(source)}")
        else:
            shutil.copyfile(source, name)
    except (DatabaseError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
