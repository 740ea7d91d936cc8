"""``manage.py timeline_preview accounts.user 42 --set trial_ends_at=2027-01-31T00:00:00Z``: what would be ahead then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline import shortcuts
from timeline.exceptions import TimelineError
from timeline.management.shared import PipedCommand, add_database_option
from timeline.models import EntityRef
from timeline.timing import in_utc

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.features.plans.what_if import Effect


class Command(PipedCommand):
    """Says what would be, and changes nothing."""

    help = (
        "Shows what an entity would have ahead if a field that tasks follow held something else, if a run of a "
        "timeline were started, or if an event came."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the entity, and what would be so."""
        parser.add_argument("model", help="Model of the entity, e.g. accounts.user.")
        parser.add_argument("id", help="Its primary key.")
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="FIELD=VALUE",
            help="A field that tasks are anchored to, and what it would hold: ends_at=2027-01-31T00:00:00Z.",
        )
        parser.add_argument("--start", default="", metavar="TIMELINE", help="A timeline, as if a run of it began now.")
        parser.add_argument("--event", default="", help="An event, as if it came now.")
        parser.add_argument("--json", action="store_true", help="Print plain data.")
        add_database_option(parser)

    # The parameters are named after the options.
    def handle(self, *args: Any, model: str, id: str, event: str, database: str, json: bool, **options: Any) -> None:
        """Print a line for each task: when it is due, when it would be, and what that means."""
        fields = dict(_field(text) for text in options["set"])
        ref = EntityRef(model.lower(), id)
        try:
            found = shortcuts.what_if(ref, fields=fields, timeline=options["start"], event=event, using=database)
        except TimelineError as error:
            raise CommandError(str(error)) from None
        if json:
            self.stdout.write(_as_json(found))
            return
        foreseen = pgettext("timeline", "foreseen")
        if found:
            now, then = pgettext("timeline", "as it is now"), pgettext("timeline", "as it would be")
            self.stdout.write(f"{now:>20}  {then:>20}")
        for effect in found:
            name = f"{effect.task_key} ({foreseen})" if effect.is_foreseen else effect.task_key
            line = f"{_at(effect.at):>20}  {_at(effect.then_at):>20}  {name}  {effect.words}"
            self.stdout.write(line)
        if not found:
            self.stdout.write(_("Nothing is ahead."))


def _field(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandError(_("--set: %(text)r names no value. Give FIELD=VALUE.") % {"text": text})
    return name, value or None


def _as_json(found: list[Effect]) -> str:
    plain = [{name: value for name, value in effect._asdict().items() if name != "row"} for effect in found]
    return json.dumps(plain, cls=DjangoJSONEncoder, indent=2)


def _at(moment: datetime | None) -> str:
    return "–" if moment is None else in_utc(moment)
