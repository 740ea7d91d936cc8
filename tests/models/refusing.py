"""What tests of constraints expect of the database."""

import pytest
from django.db import IntegrityError, connection, transaction


class Refusal:
    """
    What a test expects of the block: the constraint of this name is broken, and the test's transaction lives on.

    Of a unique key SQLite names the columns instead; ``columns`` matches those.
    """

    def __init__(self, name, columns=None):
        said = columns if columns and connection.vendor == "sqlite" else name
        self.raises = pytest.raises(IntegrityError, match=said)
        self.savepoint = transaction.atomic()

    def __enter__(self):
        self.raises.__enter__()
        self.savepoint.__enter__()

    def __exit__(self, *error):
        self.savepoint.__exit__(*error)
        return self.raises.__exit__(*error)
