"""A test runner under which no timeline is known."""

from __future__ import annotations

from typing import Any

from django.test.runner import DiscoverRunner

from timeline.testing import only_timelines


class Unknown(DiscoverRunner):
    """For tests that count queries."""

    def run_suite(self, suite: Any, **kwargs: Any) -> Any:
        """Run all tests."""
        with only_timelines():
            return super().run_suite(suite, **kwargs)
