"""``manage.py timeline_prune``: delete what has long ended, to an archive file if one is named."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.features.bulk_actions.poll import forget_bulk_actions  # of bulk_actions
from timeline.features.maintenance.prune import Pruned, prune
from timeline.management.shared import add_database_option
from timeline.operations.repeated_requests import forget_answers
from timeline.signals import pruning


class Command(BaseCommand):
    """Prunes."""

    help = (
        "Deletes runs, ad hoc tasks and holds that ended longer ago than --days, in batches; open runs stay whole. And what"
        " the API answered over a day ago to requests with an Idempotency-Key. And deliveries of webhooks; these have no"
        " place in the archive."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the age and the archive."""
        parser.add_argument("--days", type=int, required=True, help="Keep what ended within so many days.")
        parser.add_argument(
            "--archive", type=Path, help="Append the rows as JSON lines to this file before deleting them."
        )
        add_database_option(parser)

    def handle(self, *args: Any, days: int, archive: Path | None, database: str, **options: Any) -> None:
        """Prune batch after batch."""
        if days < 1:
            raise CommandError(_("--days must be at least 1."))
        before = story_now(database) - timedelta(days=days)
        total = Pruned()
        while any(batch := prune(ended_before=before, archive=_appending(archive), using=database)):
            total = Pruned(*(sum(pair) for pair in zip(total, batch, strict=True)))
        answers = 0
        while batch_of_answers := forget_answers(using=database):
            answers += batch_of_answers
        others = 0
        while some := sum(
            int(count or 0) for _receiver, count in pruning.send(None, using=database, ended_before=before)
        ):
            others += some
        while forget_bulk_actions(now=story_now(database), using=database):  # of bulk_actions
            pass
        said = _(
            "Deleted: runs %(runs)d, tasks %(tasks)d, log entries %(log_entries)d, holds %(holds)d, answers of the API"
            " %(answers)d."
        )
        self.stdout.write(said % {**total._asdict(), "answers": answers})
        if others:
            self.stdout.write(_("Deleted %(count)d more of other apps, such as deliveries.") % {"count": others})


def _appending(path: Path | None) -> Any:
    if path is None:
        return None

    def append(rows: list[dict[str, Any]]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(row, cls=DjangoJSONEncoder, ensure_ascii=False)}\n" for row in rows)

    return append
