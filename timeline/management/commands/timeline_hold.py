"""``manage.py timeline_hold``: what is on hold; and something put on hold, or released."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from timeline import shortcuts
from timeline.exceptions import AlreadyReleased, InvalidInput
from timeline.features.holds.reading import told_hold
from timeline.management.shared import PipedCommand, add_database_option
from timeline.models import EntityRef, Hold, Then
from timeline.timing import in_utc

_SHOWN = (
    "id scope target entity_label entity_id then until reason actor created_at lifted_at released_by release_reason "
    "park_above park_within settled released_at"
)


class Command(PipedCommand):
    """Shows holds, makes one, or releases one."""

    help = "Shows what is on hold. With --entity, --task, --timeline, --queue, --tag or --everything: puts it on hold."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what to hold, or which hold to release."""
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--entity", nargs=2, metavar=("LABEL", "ID"), help="Hold one entity: accounts.user 7.")
        what.add_argument("--task", metavar="KEY", help="Hold all tasks of a key: trial.remind.")
        what.add_argument("--timeline", metavar="NAME", help="Hold all tasks of a timeline.")
        what.add_argument("--queue", metavar="NAME", help="Hold all tasks of a queue.")
        what.add_argument("--tag", metavar="NAME", help="Hold all tasks that have a tag.")
        what.add_argument("--everything", action="store_true", help="Hold all tasks there are.")
        what.add_argument("--release", metavar="ID", help="Release this hold, as the list shows it.")
        parser.add_argument("--until", metavar="MOMENT", help="With its offset from UTC: 2026-03-02T08:00:00Z.")
        parser.add_argument(
            "--then", choices=Then.values, default=Then.RUN.value, help="What when it ends (default: %(default)s)."
        )
        parser.add_argument(
            "--reason", default="", help="Why: needed to hold something, and to release what a brake has stopped."
        )
        parser.add_argument("--actor", default="", help="Who decided that.")
        parser.add_argument("--json", action="store_true", help="Print plain data.")
        add_database_option(parser)

    # The parameters are named after the options.
    def handle(self, *args: Any, release: str | None, database: str, json: bool, **options: Any) -> None:
        """Print what is on hold, or what was done."""
        named = ("entity", "task", "timeline", "queue", "tag", "everything")
        what = {name: options[name] for name in named if options[name]}
        try:
            if release is not None:
                said = {name: options[name] for name in ("actor", "reason")}
                self._show([shortcuts.release(UUID(release), **said, using=database)], json)
            elif what:
                self._show([self._hold(what, database, **options)], json)
            else:
                self._show(Hold.objects.using(database).open().oldest_first(), json)
        except (InvalidInput, AlreadyReleased) as error:
            raise CommandError(str(error)) from None
        except (ValueError, Hold.DoesNotExist):
            raise CommandError(
                _("There is no hold %(id)s. Without arguments, this command lists those there are.") % {"id": release}
            ) from None

    def _hold(
        self, what: dict[str, Any], using: str, *, until: str | None, then: str, reason: str, actor: str, **_rest: Any
    ) -> Hold:
        if "entity" in what:
            what = {"entity": EntityRef(*what["entity"])}
        if not reason:
            raise CommandError(_("Say why: --reason."))
        return shortcuts.hold(**what, until=_moment(until), then=then, reason=reason, actor=actor, using=using)

    def _show(self, holds: Iterable[Hold], as_json: bool) -> None:
        several = list(holds)
        if as_json:
            data = [{name: getattr(hold, name) for name in _SHOWN.split()} for hold in several]
            self.stdout.write(json.dumps(data, cls=DjangoJSONEncoder, indent=2))
        elif not several:
            self.stdout.write(self.style.SUCCESS(_("Nothing is on hold.")))
        for hold in several if not as_json else ():
            self.stdout.write(f"{hold.pk}  {_told(hold)}")


def _told(hold: Hold) -> str:
    if hold.released_at is None:
        return told_hold(hold)
    return _("Released on %(at)s (%(what)s).") % {"at": in_utc(hold.released_at), "what": hold.what}


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = parse_datetime(text)
    except (ValueError, ValidationError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise CommandError(_("--until: %(text)r is no moment. Give for example 2026-03-02T08:00:00Z.") % {"text": text})
    return moment
