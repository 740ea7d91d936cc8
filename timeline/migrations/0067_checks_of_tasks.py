"""
The CHECKs of tasks, in fewer words: PostgreSQL reads them anew for each statement that writes a task, and that took longer than
to write the row. They let the same rows pass as before.
"""

import datetime

from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.lookups import Exact, GreaterThanOrEqual, LessThan

from timeline.conditions import EarliestOf, IsSet, LatestOf, OneOf
from timeline.migrations._constraints import ReplaceConstraintsForRowsToCome

_STATES = ["active", "available", "cancelled", "completed", "discarded", "pending", "retryable", "scheduled"]
_FINAL = ["cancelled", "completed", "discarded"]
_LEASED = ["active", "pending"]
_REASONS = [
    "definition",
    "done",
    "entity_gone",
    "error",
    "event",
    "exit",
    "expired",
    "guard",
    "handler",
    "hold",
    "in_doubt",
    "moved",
    "operator",
    "overlap",
    "predecessor",
    "released",
    "retry_after",
    "run_ended",
    "shadow",
    "state",
    "superseded",
    "then",
    "timeout",
    "until",
    "waiting",
    "worker_lost",
]
_DATES = [
    F("nominal_at"),
    F("scheduled_at"),
    F("created_at"),
    F("anchor_value"),
    F("expires_at"),
    F("started_at"),
    F("finished_at"),
]
_FIRST, _LAST = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (1970, 9000))


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0066_indexes_of_lists"),
    ]

    operations = [
        ReplaceConstraintsForRowsToCome(
            "scheduledtask",
            [
                models.CheckConstraint(
                    condition=Q(limit_key="") | Q(slot__gt=0) | Q(lease_expires_at__isnull=True),
                    name="timeline_task_has_slot",
                ),
                models.CheckConstraint(condition=Q(OneOf(F("state"), _STATES)), name="timeline_task_state_known"),
                models.CheckConstraint(
                    condition=Q(Exact(IsSet(F("finished_at")), OneOf(F("state"), _FINAL))),
                    name="timeline_task_final_finished",
                ),
                models.CheckConstraint(
                    condition=Q(Exact(IsSet(F("lease_expires_at")), OneOf(F("state"), _LEASED))),
                    name="timeline_task_held_by_lease",
                ),
                models.CheckConstraint(
                    condition=Q(OneOf(F("reason_code"), _REASONS)) | Q(reason_code="", finished_at__isnull=True),
                    name="timeline_task_end_has_reason",
                ),
                models.CheckConstraint(
                    condition=Q(GreaterThanOrEqual(EarliestOf(*_DATES), _FIRST), LessThan(LatestOf(*_DATES), _LAST)),
                    name="timeline_task_in_range",
                ),
            ],
        ),
    ]
