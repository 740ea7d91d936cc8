"""``manage.py timeline_enroll trial --filter is_active=True --past skip``: runs for those who were there before a timeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Model, QuerySet
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.formats import date_format
from django.utils.timezone import get_current_timezone, is_naive, make_aware
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline.clocks import story_now
from timeline.exceptions import TimelineError
from timeline.management.shared import Bar, add_rows_options, length, lookups, said_of_some
from timeline.models import model_of
from timeline.operations.enroll import Ahead, blaming_filter, enroll, foresee_enrolling, rows_matching
from timeline.operations.sets import Portion, check_batch_size, pages
from timeline.operations.start import Past
from timeline.registry import registry

DAYS: Final = 14  # Shown one by one; what comes later is added up.


class Command(BaseCommand):
    """Enrols those who were there before."""

    help = (
        "Begins a run of a timeline for each row that has none. Shows first how many tasks would be due on which day; with "
        "--apply it does it, in batches. Who has a run is passed over, so that it can be called again after a crash."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the timeline, whom it is for, and what becomes of the past."""
        parser.add_argument("timeline", help="Name of the timeline, e.g. trial.")
        parser.add_argument(
            "--started-at",
            metavar="FIELD|TIME",
            help="What times count from: a field of the row, or a date or time (default: now).",
        )
        parser.add_argument(
            "--past",
            choices=list(map(str, Past)),
            default=Past.SKIP.value,
            help="What becomes of tasks that were due before: skip: they never run; expire: they run only if their date "
            "becomes another; run: they run now (default: %(default)s).",
        )
        parser.add_argument(
            "--spread", metavar="6h", help="Within which the first tasks become due (default: at once)."
        )
        parser.add_argument("--key", default="", help="Of the runs.")
        parser.add_argument("--again", action="store_true", help="Begin a run, too, for those whose run has ended.")
        add_rows_options(parser, actor="timeline_enroll")

    # The parameters are named after the options.
    def handle(self, *args: Any, timeline: str, apply: bool, database: str, **options: Any) -> None:
        """Show what would be; do it if told to."""
        try:
            rows = _rows(timeline, options["filter"], database)
            check_batch_size(options["batch"])
            asked = {
                "timeline": timeline,
                "key": options["key"],
                "started_at": _begin(options["started_at"]),
                "once": not options["again"],
                "spread": length("--spread", options["spread"]),
                "past": options["past"],
                "clock": story_now,
            }
            with blaming_filter(rows, using=database):
                total = rows.count()
            with Bar(self.stdout, total) as bar:
                if apply:
                    batches = _passing(rows, options["batch"], database, bar)
                    done = enroll(batches=batches, params={}, actor=options["actor"], **asked)
                else:
                    ahead = Ahead()
                    batches = pages(rows, rows.model, options["batch"], using=database)
                    for ahead in foresee_enrolling(batches=batches, **asked):
                        bar.at(ahead.runs + ahead.passed)
        except TimelineError as error:
            raise CommandError(said_of_some(error, written=apply)) from error
        if not apply:
            self._show(ahead, options["past"], total)
            return
        said = _(
            "Runs begun: %(started)d, with tasks: %(tasks)d. Of these, were due before and do not run: %(cancelled)d."
            " Passed over: %(again)d."
        )
        counts = {"started": done.started, "tasks": done.tasks, "cancelled": done.cancelled, "again": done.again}
        self.stdout.write(self.style.SUCCESS(said % counts))

    def _show(self, ahead: Ahead, past: str, total: int) -> None:
        said = ngettext(
            "Of %(total)d row, %(runs)d would get a run; %(passed)d has one.",
            "Of %(total)d rows, %(runs)d would get a run; %(passed)d have one.",
            total,
        )
        self.stdout.write(said % {"total": total, "runs": ahead.runs, "passed": ahead.passed})
        for line in (*_late(ahead, past), *_table(ahead)):
            self.stdout.write(line)
        for problem, count in ahead.problems.most_common(5):
            self.stdout.write(
                self.style.WARNING(_("%(count)d of them stop it: %(problem)s") % {"count": count, "problem": problem})
            )
        self.stdout.write(_("Nothing was written. Say --apply to do it."))


def _rows(timeline: str, filters: list[str], using: str) -> QuerySet[Model]:
    definition = registry.timeline(timeline)
    model = model_of(definition.label)
    if model is None:
        raise CommandError(
            _("%(timeline)s is about no entity. Begin its run by hand: start(…).") % {"timeline": timeline}
        )
    return rows_matching(model, lookups(filters), using=using)


def _begin(text: str | None) -> datetime | str | None:
    """A time, or the name of a field; None: now."""
    if text is None:
        return None
    try:
        moment = parse_datetime(text)
        day = None if moment else parse_date(text)
    except ValueError as error:
        raise CommandError(
            _("--started-at: %(text)r is no time (%(error)s).") % {"text": text, "error": error}
        ) from None
    if day is not None:
        moment = datetime(day.year, day.month, day.day)  # noqa: DTZ001 (made aware below)
    if moment is None:
        return text
    return make_aware(moment, get_current_timezone()) if is_naive(moment) else moment


def _passing(rows: QuerySet[Model], size: int, using: str, bar: Bar) -> Iterator[Portion]:
    """The batches, with a bar that says how many of them went by."""
    done = 0
    for batch in pages(rows, rows.model, size, using=using):
        yield batch
        done += len(batch.refs)
        bar.at(done)


def _late(ahead: Ahead, past: str) -> Iterator[str]:
    said = {
        Past.RUN: _("%(task)s: %(count)d due before, to be run at once."),
        Past.SKIP: _("%(task)s: %(count)d due before, never to be run."),
        Past.EXPIRE: _("%(task)s: %(count)d due before, to be run only if the date changes."),
    }
    for name, count in sorted(ahead.late.items()):
        yield said[Past(past)] % {"task": name, "count": count}


def _table(ahead: Ahead) -> list[str]:
    """A line a day, a column a task."""
    if not ahead.days:
        return []
    names = sorted({name for name, _day in ahead.days})
    days = sorted({day for _name, day in ahead.days})
    rows = [[pgettext("timeline", "day"), *names]]
    rows += [[date_format(day, "Y-m-d"), *_counts(ahead.days, names, [day])] for day in days[:DAYS]]
    if later := days[DAYS:]:
        rows.append([_("until %(day)s") % {"day": date_format(later[-1], "Y-m-d")}, *_counts(ahead.days, names, later)])
    widths = [max(len(row[place]) for row in rows) for place in range(len(names) + 1)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def _counts(counted: Counter[tuple[str, date]], names: list[str], days: list[date]) -> list[str]:
    return [str(sum(counted[name, day] for day in days)) for name in names]
