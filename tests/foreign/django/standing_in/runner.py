"""A test runner for Django's own tests of its tasks: our backend stands in the place of those that Django brings."""

from __future__ import annotations

from typing import Any

from django.tasks.backends import dummy, immediate
from django.test import SimpleTestCase
from django.test.runner import DiscoverRunner

from standing_in.backends import Dummy, Immediate


class InItsPlace(DiscoverRunner):
    """Those tests keep nothing in a database, and may not ask one; ours need it."""

    def build_suite(self, *args: Any, **kwargs: Any) -> Any:
        """Find the tests, which take the names of the backends from these modules."""
        dummy.DummyBackend = Dummy
        immediate.ImmediateBackend = Immediate
        SimpleTestCase.databases = frozenset({"default"})
        return super().build_suite(*args, **kwargs)
