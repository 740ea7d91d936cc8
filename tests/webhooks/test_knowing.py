"""Whether there is an endpoint is remembered; not what a transaction sees that may be rolled back."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from timeline.webhooks.models import Endpoint
from timeline.webhooks.receivers import is_any

pytestmark = pytest.mark.django_db(transaction=True)


class TestIsAny:
    def test_is_asked_once_where_nothing_changes(self, endpoint_for):
        endpoint_for("told")

        with CaptureQueriesContext(connection) as asked:
            assert [is_any(using="default") for _each in range(3)] == [True] * 3

        assert len(asked) == 1

    @pytest.mark.parametrize("savepoint", [False, True])
    def test_forgets_a_deletion_that_is_rolled_back(self, endpoint_for, savepoint):
        endpoint_for("told")
        with transaction.atomic():
            with transaction.atomic(savepoint=savepoint):
                Endpoint.objects.all().delete()
            assert not is_any(using="default")
            transaction.set_rollback(True)

        assert is_any(using="default")

    def test_remembers_again_once_the_change_is_committed(self, endpoint_for):
        endpoint_for("told")
        with transaction.atomic():
            Endpoint.objects.all().delete()
            is_any(using="default")

        with CaptureQueriesContext(connection) as asked:
            assert [is_any(using="default") for _each in range(3)] == [False] * 3

        assert len(asked) == 1

    def test_asks_nothing_of_a_database_that_has_no_endpoints(self, endpoint_for, settings):
        """A machine that tells has entities there, and the host's router keeps this app away."""
        endpoint_for("told")
        settings.DATABASE_ROUTERS = [f"{__name__}.NotHere"]

        with CaptureQueriesContext(connection) as asked:
            assert not is_any(using="default")

        assert not asked


class NotHere:
    """As a host's router that has webhooks in another database."""

    def allow_migrate(self, _database, app_label, **_hints):
        return app_label != "timeline_webhooks"
