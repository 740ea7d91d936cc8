"""Tasks under a rate that are due."""

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline.shortcuts import schedule


@pytest.fixture
def due(now):
    def made(name, *notes):
        return [
            schedule(f"paced.{name}", Order.objects.create(note=note), at=now - timedelta(seconds=99 - number)).task
            for number, note in enumerate(notes)
        ]

    return made
