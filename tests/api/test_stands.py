"""Tasks say until when they are on hold, and what they wait for; a list asks once for all."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.conftest import ROOT
from timeline.models import ScheduledTask
from timeline.shortcuts import hold, start


@pytest.fixture
def boss(person, client):
    client.force_login(person("boss", is_superuser=True, is_staff=True))
    return client


class TestStands:
    @pytest.mark.parametrize("path", ["tasks/", "users/{id}/tasks/", "tasks/{task}/"])
    def test_says_until_when_it_is_on_hold(self, boss, person, path):
        ada = person("ada")
        start("account", ada)
        row = ScheduledTask.objects.get(task_key="account.greet", entity_id=str(ada.pk))
        path = path.format(id=ada.pk, task=row.pk)

        assert "held until" not in boss.get(f"{ROOT}/{path}").content.decode()
        hold(ada, reason="a dispute")

        assert '"stands":"held until somebody releases it"' in boss.get(f"{ROOT}/{path}").content.decode()

    @pytest.mark.parametrize("path", ["tasks/", "users/{id}/tasks/"])
    def test_asks_once_however_many(self, boss, person, path):
        def asked():
            with CaptureQueriesContext(connection) as queries:
                assert boss.get(f"{ROOT}/{path.format(id=ada.pk)}").status_code == 200
            return len(queries)

        ada = person("ada")
        start("account", ada)
        few = asked()
        for number in range(9):
            start("account", ada, key=f"{number}")
            start("account", person(f"p{number}"))

        assert asked() == few
