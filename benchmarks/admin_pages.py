"""
The admin's pages over many tasks, on PostgreSQL: each is opened a number of times through the site's whole request path.

Prints how long each took (median and 95th percentile) and how many queries it made. Rows go into a database of the
benchmark's own, on the server that ``DATABASE_URL`` names or one that comes with a pip package, and are gone afterwards.
Figures of one machine at one moment: compare within one run only.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter


def main(rows: int, times: int) -> None:
    """Fill, measure and print."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext, setup_databases, setup_test_environment, teardown_databases
    from django.urls import reverse
    from django.utils import timezone

    from project.accounts.models import User
    from timeline.models import ScheduledTask

    setup_test_environment()
    made = setup_databases(verbosity=0, interactive=False, aliases={"default"})
    try:
        with connection.cursor() as cursor:
            cursor.execute(Path(__file__).with_suffix(".sql").read_text(), {"rows": rows})
            cursor.execute("VACUUM ANALYZE timeline_scheduledtask")
            cursor.execute("VACUUM ANALYZE timeline_timelinerun")
        now = timezone.now()
        users = [User(email=f"{n}@example.com", website="x", signed_up_at=now, trial_ends_at=now) for n in range(500)]
        staff = User(email="staff", is_staff=True, is_superuser=True, signed_up_at=now, trial_ends_at=now)
        User.objects.bulk_create([staff, *users])
        client = Client()
        client.force_login(User.objects.get(email="staff"))
        listed = reverse("admin:timeline_scheduledtask_changelist")
        deep = ScheduledTask.objects.filter(state="scheduled").in_order()[rows // 3]
        day = (now + timezone.timedelta(days=5)).date()
        pages = {
            "list": listed,
            "next page, deep": f"{listed}?after={deep.scheduled_at:%Y-%m-%dT%H:%M:%S.%f}%2B00:00_{deep.pk}",
            "overdue": f"{listed}?state=overdue",
            "completed": f"{listed}?state=completed",
            "discarded": f"{listed}?state=discarded",
            "all states": f"{listed}?state=all",
            "one timeline": f"{listed}?timeline=trial",
            "a rare timeline": f"{listed}?timeline=other",
            "a timeline of nothing": f"{listed}?timeline=none",
            "one task": f"{listed}?task=trial.expire",
            "a rare task": f"{listed}?task=other.rare",
            "one kind": f"{listed}?kind=accounts.user",
            "a kind of nothing": f"{listed}?kind=accounts.team",
            "a crowded day": f"{listed}?day={day}",
            "cancelled by an exit": f"{listed}?state=cancelled&task=trial.remind&reason=exit",
            "by an operator": f"{listed}?state=cancelled&task=trial.remind&reason=operator",
            "of all by an operator": f"{listed}?state=cancelled&reason=operator",
            "failed this week": f"{listed}?state=discarded&task=trial.remind&ended=week",
            "failed this week, all": f"{listed}?state=discarded&timeline=trial&ended=week",
            "overdue of a task": f"{listed}?state=overdue&task=trial.remind",
            "all timelines": reverse("admin:timeline_scheduledtask_inventory"),
            "a timeline": reverse("admin:timeline_scheduledtask_timeline", args=["trial"]),
            "a machine": reverse("admin:timeline_scheduledtask_timeline", args=["booking"]),
            "search": f"{listed}?q=4711",
            "a task": reverse("admin:timeline_scheduledtask_change", args=[deep.pk]),
            "an entity": f"{reverse('admin:timeline_scheduledtask_entity')}?label=accounts.user&id=4711",
        }
        print(f"{ScheduledTask.objects.count():,} tasks, PostgreSQL {connection.pg_version}, {times} times each\n")
        print(f"{'page':<24} {'median':>8} {'p95':>8} {'queries':>8}")
        for name, where in pages.items():
            took = []
            for _ in range(times):
                with CaptureQueriesContext(connection) as queries:
                    begin = perf_counter()
                    status = client.get(where).status_code
                    took.append((perf_counter() - begin) * 1000)
            if status != 200:
                raise SystemExit(f"{where} answered {status}.")
            print(f"{name:<24} {median(took):>5.0f} ms {quantiles(took, n=20)[-1]:>5.0f} ms {len(queries):>8}")
    finally:
        teardown_databases(made, verbosity=0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=20)
    arguments = parser.parse_args()
    os.environ["TEST_DB"] = "postgresql"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    main(arguments.rows, arguments.times)
