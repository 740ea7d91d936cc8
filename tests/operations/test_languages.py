"""What rows and logs keep is in English, whatever the language of the worker, of the site or of the entity."""

from __future__ import annotations

from datetime import date

import pytest
from django.utils import translation

from tests.testapp.models import Order
from timeline import at
from timeline.exceptions import InvalidInput
from timeline.lifecycle import State
from timeline.models import Identity, LogEntry
from timeline.shortcuts import cancel, schedule
from timeline.tasks import poll

BEYOND = date(9001, 1, 1)


@pytest.fixture(autouse=True)
def _in_german():
    with translation.override("de"):
        yield


class TestRows:
    def test_keep_an_error_of_the_package_in_english(self, work, run_at, later):
        """Though the handler was in German, and whoever catches the error there reads German."""
        seen = []

        def handler(job, order):
            try:
                schedule("job.ad_hoc", order, at=later, key="k" * 101)
            except InvalidInput as error:
                seen.append(str(error))
                raise

        done = run_at(work(handler), later)

        assert seen[0].endswith("Geben Sie Text von höchstens 100 Zeichen an, ohne NUL.")
        assert done.reason.endswith("Give text of at most 100 characters, without NUL.")
        assert "Give text of at most 100" in done.error
        assert "Geben Sie" not in f"{done.error} {LogEntry.objects.filter(task=done).latest('seq').detail}"

    def test_keep_in_english_that_a_result_is_none(self, work, run_at, later):
        assert run_at(work(lambda job, order: {1}), later).reason.startswith("result: has a set. Use only")

    def test_keep_in_english_what_is_wrong_with_a_date(self, work, run_at, later):
        Order.objects.update(due_on=later.date())
        row = work(when=at("due_on"))
        Order.objects.update(due_on=BEYOND)

        done = run_at(row, later)

        assert (done.state, done.reason_code) == (State.CANCELLED, "superseded")
        assert done.reason.endswith("is outside the years 1970 to 9000. Give a date within them.")


class TestLogs:
    def test_say_in_english_why_a_run_is_not_reconciled(self, work, now, later, caplog):
        Order.objects.update(due_on=later.date())
        row = work(when=at("due_on"))
        Order.objects.update(due_on=BEYOND)

        cancel(row, reason="they asked")

        assert "due_on: 9001-01-01" in caplog.text
        assert "Give a date within them." in caplog.text

    def test_say_in_english_that_the_database_is_of_another_site(self, settings, db, caplog):
        Identity.objects.update(site="production")
        settings.TIMELINE = {"SITE": "staging"}

        poll()

        assert "is that of the site 'production', and TIMELINE['SITE'] is 'staging': nothing of it runs" in caplog.text
