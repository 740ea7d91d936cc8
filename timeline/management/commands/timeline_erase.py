"""``manage.py timeline_erase accounts.user 42``: blank what is kept about somebody, and leave that something was."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from timeline import shortcuts
from timeline.exceptions import TimelineError
from timeline.features.maintenance.erase import erasable, refuse_open
from timeline.management.shared import add_database_option
from timeline.models import EntityRef, exact_ref
from timeline.models.entities import load_entities
from timeline.shortcuts.erasure import owned_by


class Command(BaseCommand):
    """Erases."""

    help = (
        "Blanks what tasks, logs, runs, events, steps, holds and webhooks say of an entity: payloads, results, errors, texts "
        "and names of people. Times, states, codes and keys stay. Shows first what there is; --apply does it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the entity, and what else."""
        parser.add_argument("label", help="Label of its model, e.g. accounts.user.")
        parser.add_argument("id", help="Its primary key.")
        parser.add_argument("--owned", action="store_true", help="Of a user: also what timelines declare as theirs.")
        parser.add_argument("--cancel", action="store_true", help="Cancel first what is open, and end its runs.")
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--apply", action="store_true", help="Do it. Needs --reason.")
        choice.add_argument("--dry-run", action="store_true", help="Only show what there is: that is so anyway.")
        parser.add_argument("--reason", default="", help="Why; kept in an event, timeline.erased.")
        parser.add_argument("--actor", default="timeline_erase", help="Who does it (default: %(default)s).")
        add_database_option(parser)

    # The parameters are named after the options.
    def handle(self, *args: Any, label: str, id: str, database: str, **options: Any) -> None:
        """Show what there is; with ``--apply``, erase it."""
        ref = exact_ref(label, id)
        if ref is None or not ref.label:
            raise CommandError(_("There is no such entity."))
        refs = self._all(ref, database) if options["owned"] else [ref]
        if not options["apply"]:
            for one in refs:
                found = ", ".join(f"{name} {count}" for name, count in erasable(one, using=database).items())
                self.stdout.write(f"{one}: {found}")
            self.stdout.write(_("Nothing was changed. With --apply it is."))
            return
        if not options["reason"]:
            raise CommandError(_("Say why: --reason."))
        given = {name: options[name] for name in ("reason", "actor", "cancel")}
        for one in () if options["cancel"] else refs:
            self._try(one, partial(refuse_open, [one], using=database))
        for one in refs:
            done = self._try(one, partial(shortcuts.erase, one, **given, using=database))
            found = ", ".join(f"{name} {count}" for name, count in done.rows.items())
            found = found or _("nothing was left to erase")
            self.stdout.write(f"{one}: {found}")

    def _try(self, ref: EntityRef, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except TimelineError as error:
            raise CommandError(f"{ref}: {error}") from error

    def _all(self, ref: EntityRef, using: str) -> list[EntityRef]:
        entity = load_entities([ref], using=using).get(ref)
        if entity is None:
            raise CommandError(_("%(entity)s is not there: what belongs to it cannot be found.") % {"entity": ref})
        return list(dict.fromkeys([ref, *owned_by(entity, using=using)]))
