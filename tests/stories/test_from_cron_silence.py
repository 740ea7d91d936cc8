"""What fails for good does not fail in silence: people hear of it at once, from a worker as it is run."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from project.billing import services
from project.billing.models import Customer, Payment
from project.billing.timelines import FailedPayment
from tests.processes import kill, start_process, wait_for
from timeline.models import ScheduledTask
from timeline.testing import only_timelines


@pytest.fixture
def failed(transactional_db):
    """A payment that has failed for the first time."""
    with only_timelines(FailedPayment):
        customer = Customer.objects.create(name="Ada", email="ada@example.com", joined_at=timezone.now())
        payment = Payment.objects.create(customer=customer, cents=2900, created_at=timezone.now())
        services.fail(payment, "card expired", attempt=1)


@pytest.mark.processes
class TestADiscard:
    def test_is_told_at_once(self, failed, outside, tmp_path):
        """The chat has moved: it answers 404, and that no retry mends. The worker polls as by default, once a second."""
        worker = start_process(
            tmp_path,
            "worker",
            "manage",
            "timeline_worker",
            DJANGO_SETTINGS_MODULE="tests.billing_settings",
            OUTSIDE_URL=f"{outside.url}/moved",
            TEST_POLL_INTERVAL="1",
        )
        try:
            # The file is there before its text is.
            wait_for(lambda: any(mail.read_text() for mail in tmp_path.glob("mail/*")), "a mail")
        finally:
            kill(worker)

        task = ScheduledTask.objects.get(task_key="failed_payment.look_after")
        telling = ScheduledTask.objects.get(task_key="alerts.tell")
        [mail] = tmp_path.glob("mail/*")
        assert task.state == "discarded"
        assert telling.scheduled_at - task.finished_at < timedelta(seconds=1)  # Due with the next poll.
        said = mail.read_text()
        assert "operator@parley.example" in said
        assert "failed_payment.look_after" in said
        assert "card expired" not in said  # No payload in a mail.
