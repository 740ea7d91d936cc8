"""
The rule machine: random lives, compared with a model after each step.

``STATEFUL_EXAMPLES`` and ``STATEFUL_STEPS`` make it larger; without them it is the same each time. With them, a life that goes
wrong is made shorter, and faults are planted on PostgreSQL too.
"""

from __future__ import annotations

import os

import pytest
from django.db import DatabaseError, connection
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.asking import WHOLE, sample
from tests.faults.life.faults import FAULTS
from tests.faults.life.machine import Life
from tests.faults.planted.surgery import planted
from timeline.exceptions import TimelineError

pytestmark = pytest.mark.django_db(transaction=True)

LARGE = "STATEFUL_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("STATEFUL_EXAMPLES", "12"))
STEPS = int(os.environ.get("STATEFUL_STEPS", "25"))
ASKED = sample(FAULTS, 3, whole=WHOLE or LARGE)


def live(*, shortest: bool = False):
    """Let the machine run; ``shortest``: make a life that goes wrong as short as can be."""
    given = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        derandomize=not LARGE,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if shortest else [Phase.generate],
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(Life, settings=given)


class TestLife:
    def test_is_as_the_model_says(self):
        live(shortest=LARGE)


if connection.vendor == "sqlite" or LARGE:  # On PostgreSQL it takes minutes.

    class TestPlantedFault:
        @pytest.mark.parametrize("fault", ASKED, ids=[fault.name for fault in ASKED])
        def test_is_noticed(self, fault, tmp_path):
            """With as many lives and steps as without a fault."""
            noticed = AssertionError, TimelineError, DatabaseError, pytest.fail.Exception

            with planted(fault, tmp_path), pytest.raises(noticed):
                live()
