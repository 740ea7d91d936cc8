"""The feature that docs/explanation/inside.md writes, as it stands there: put into a folder, named in the list, and used."""

from __future__ import annotations

import re
import sys
from datetime import timedelta

import pytest

from tests.pages import DOCS
from tests.testapp.models import Order
from timeline import Timeline, hooks, task
from timeline.exceptions import DefinitionError
from timeline.features import FEATURES
from timeline.models import ScheduledTask
from timeline.reading.reason_texts import is_of_the_system
from timeline.shortcuts import schedule
from timeline.testing import StoryClock, only_timelines

PAGE = DOCS / "explanation" / "inside.md"
DAY = timedelta(days=1)


def written():
    """Path of each file that the page writes → its text."""
    section = PAGE.read_text(encoding="utf-8").partition("## Write a feature")[2].partition("\n## ")[0]
    found = re.findall(
        r"^`timeline/features/(cooldown/\w+\.py)`.*?^```py\n(.*?)^```", section, re.DOTALL | re.MULTILINE
    )
    return dict(found)


@pytest.fixture
def cooldown(monkeypatch, tmp_path):
    """The feature, in the list."""
    for path, text in written().items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    (tmp_path / "cooldown" / "__init__.py").write_text("")
    monkeypatch.setattr("timeline.features.__path__", [*sys.modules["timeline.features"].__path__, str(tmp_path)])
    monkeypatch.setattr(hooks, "FEATURES", (*FEATURES, "cooldown"))
    hooks.rules.cache_clear()
    hooks.hooks.cache_clear()
    yield
    hooks.rules.cache_clear()
    hooks.hooks.cache_clear()
    for name in [name for name in sys.modules if name.startswith("timeline.features.cooldown")]:
        del sys.modules[name]


class TestCooldown:
    def test_is_written_in_two_files(self):
        assert set(written()) == {"cooldown/rules.py", "cooldown/hooks.py"}

    def test_refuses_what_is_no_length_of_time(self, cooldown):
        with pytest.raises(DefinitionError, match=r"has cooldown = 1. Use a positive timedelta"):

            class Digest(Timeline):
                entity = "testapp.Order"

                @task(cooldown=1)
                def mail(self, order):
                    """Send a mail."""

    def test_puts_off_what_was_done_a_short_while_ago(self, db, cooldown):
        class Digest(Timeline):
            entity = "testapp.Order"

            @task(cooldown=DAY)
            def mail(self, order):
                """Send a mail."""

        with only_timelines(Digest), StoryClock() as clock:
            begun = clock.now
            order, other = Order.objects.create(), Order.objects.create()
            for number, whose in enumerate([order, order, other]):
                schedule("digest.mail", whose, at=begun + timedelta(hours=number), key=str(number))
            clock.advance(hours=2)
            again = ScheduledTask.objects.get(occurrence="1")
            before, told = (again.state, again.scheduled_at, again.reason), is_of_the_system(again)
            clock.advance(days=1)
            again.refresh_from_db()

        assert before == ("retryable", begun + DAY, "it was done a short while ago")
        assert told
        assert (again.state, again.attempt, again.failures) == ("completed", 2, 0)
        assert ScheduledTask.objects.get(occurrence="2").finished_at == begun + timedelta(hours=2)
