"""
For tests: story time that a test moves, tasks run inline as they fall due, and assertions on an entity's timeline.

With pytest, take the fixture ``clock``. In a ``TestCase``, say ``self.clock = self.enterContext(StoryClock())`` in ``setUp``.
"""

from timeline.testing.clock import StoryClock
from timeline.testing.expectations import Expectation, expect
from timeline.testing.scope import autostart, only_timelines

__all__ = ["Expectation", "StoryClock", "autostart", "expect", "only_timelines"]
