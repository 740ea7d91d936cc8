"""Requests with one ``Idempotency-Key`` that meet: of different bodies one is taken, and who waited acts if the first fails."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest
from django.db import connections

from tests.api.conftest import ROOT, Asker
from timeline import shortcuts
from timeline.models import Answer, ScheduledTask

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cancel(staff, about, ada):
    """Have one task called off from several threads, all with one key: ``cancel("x", "y")`` gives the answers."""
    row = about("account.call", ada)

    def one(reason):
        try:
            client = Asker(staff).client
            client.raise_request_exception = False
            headers = {"Idempotency-Key": "5f1c"}
            path = f"{ROOT}/tasks/{row.pk}/cancel/"
            return client.post(path, {"reason": reason}, content_type="application/json", headers=headers)
        finally:
            connections.close_all()

    def run(*reasons):
        with ThreadPoolExecutor(len(reasons)) as threads:
            return list(threads.map(one, reasons))

    return run


def test_of_different_bodies_one_is_taken_and_the_other_refused(cancel):
    answers = cancel("x", "y", "x", "y")

    assert sorted(answer.status_code for answer in answers) == [200, 200, 422, 422]
    assert sum("Idempotency-Replayed" in answer.headers for answer in answers) == 1
    [taken] = {answer.json()["reason"] for answer in answers if answer.status_code == 200}
    assert ScheduledTask.objects.get().reason == taken


def test_who_waits_for_one_that_then_fails_acts(cancel, monkeypatch):
    real, calls = shortcuts.cancel, []

    def fails_at_first(*args, **given):
        calls.append(args)
        done = real(*args, **given)
        if len(calls) == 1:
            sleep(1)  # The other one waits for the key meanwhile, and cannot say so.
            raise RuntimeError("the process is at its end")
        return done

    monkeypatch.setattr(shortcuts, "cancel", fails_at_first)
    answers = cancel("x", "x")

    assert sorted(answer.status_code for answer in answers) == [200, 500]
    assert not [answer for answer in answers if "Idempotency-Replayed" in answer.headers]
    assert (len(calls), Answer.objects.count(), ScheduledTask.objects.get().state) == (2, 1, "cancelled")
