"""What commands share: options and lookups that are typed, and what they print into a terminal or a pipe."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import textwrap
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from django.apps import apps
from django.contrib.admin import ModelAdmin, site
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import CharField
from django.utils.dateparse import parse_duration
from django.utils.translation import gettext as _

from timeline.exceptions import InvalidInput, NotRunHere, TimelineError, UnreadableEntity
from timeline.models import model_of
from timeline.operations.sets import BATCH
from timeline.payloads import is_encodable
from timeline.reading.search import first_of, refs_of
from timeline.registry import registry
from timeline.signals import Ending, attempts_failed, tasks_ended
from timeline.worker.loop import Loop

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.models import EntityRef


_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SHORT: Final = re.compile(r"(\d{1,6})([smhd])")

MOST: Final = 20  # Of each kind.
WIDTH: Final = 30
NARROW: Final = 80  # Columns, where there is no terminal.
NARROWEST: Final = 30
ENDED_BY_ITS_READER: Final = 128 + signal.SIGPIPE  # As a shell reports it of any program.


def add_rows_options(parser: CommandParser, *, actor: str) -> None:
    """Let a command take what those have in common that begin runs for rows: which rows, whether to do it, and how."""
    parser.add_argument(
        "--filter", action="append", default=[], metavar="LOOKUP=VALUE", help="Only these rows, as in filter()."
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--apply", action="store_true", help="Do it.")
    choice.add_argument("--dry-run", action="store_true", help="Only show what it would do: that is so anyway.")
    parser.add_argument("--batch", type=int, default=BATCH, help="Rows a transaction (default: %(default)s).")
    parser.add_argument("--actor", default=actor, help="Who does it (default: %(default)s).")
    add_database_option(parser)


def add_database_option(
    parser: CommandParser,
    *,
    default: str | None = DEFAULT_DB_ALIAS,
    # As argparse takes it.
    help: str = "Database alias (default: %(default)s).",
) -> None:
    """Let a command take the alias of a database, and refuse one that the settings do not have."""
    parser.add_argument("--database", type=_alias, default=default, help=help)


def pairs(option: str, given: Sequence[str], form: str, *, at_last: bool = False) -> dict[str, str]:
    """Read ``a=b``, any number of times. A value may have a ``=`` itself, a state as well as a lookup hardly has one."""
    found: dict[str, str] = {}
    for text in given:
        if not is_encodable(text):  # A shell gives any bytes; no database takes them.
            raise CommandError(_("%(option)s %(text)s is no text in UTF-8.") % {"option": option, "text": ascii(text)})
        left, sign, right = text.rpartition("=") if at_last else text.partition("=")
        if not sign or not (right or not at_last):
            raise CommandError(
                _("%(option)s %(text)r: give %(form)s.") % {"option": option, "text": text, "form": form}
            )
        if found.setdefault(left, right) != right:
            raise CommandError(_("%(option)s names %(left)r twice.") % {"option": option, "left": left})
    return found


def lookups(given: Sequence[str]) -> dict[str, Any]:
    """Read ``--filter LOOKUP=VALUE``, any number of times, as what ``filter()`` takes."""
    return dict(map(_lookup, pairs("--filter", given, "LOOKUP=VALUE").items()))


def said_of_some(error: TimelineError, *, written: bool) -> str:
    """Tell an error that has stopped a command for many rows: whose it is, and that the batches before it stand."""
    whose, names_it = error.entity if isinstance(error, InvalidInput) else None, isinstance(error, UnreadableEntity)
    said = str(error) if whose is None or names_it else f"{whose}: {error}"
    if written and (whose is not None or names_it):
        said += " " + _("What was begun in the batches before it stands. Mend it, and call it again.")
    return said


def length(option: str, text: str | None) -> timedelta | None:
    """Read a length of time such as ``6h``, ``90m`` or ``00:30:00``; None: none was given."""
    if text is None:
        return None
    short = _SHORT.fullmatch(text)
    found = timedelta(**{_UNITS[short[2]]: int(short[1])}) if short else parse_duration(text)
    if found is None:
        said = {"option": option, "text": text}
        raise CommandError(_("%(option)s: %(text)r is no duration. Give for example 6h or 00:30:00.") % said)
    return found


def _alias(text: str) -> str:
    if text not in connections:
        said = {"alias": ascii(text), "known": ", ".join(sorted(connections))}
        raise ArgumentTypeError(_("%(alias)s is no database here. Give one of %(known)s.") % said)
    return text


def _lookup(given: tuple[str, str]) -> tuple[str, Any]:
    """What a shell can only give as text."""
    name, value = given
    if name.endswith("__isnull") and value.lower() in ("true", "false"):
        return name, value.lower() == "true"
    return name, value.split(",") if name.endswith(("__in", "__range")) else value


def found_by(words: str, *, using: str) -> list[EntityRef]:
    """Entities of timelines that words of the admin's search find; one that has just these words in a field is found alone."""
    labels = sorted({known.label for known in registry if known.label})
    models = [model for label in labels if (model := model_of(label)) is not None]
    found = [
        (entity, fields)
        for model in models
        for fields in [fields_of(model)]
        for entity in _search(model, fields, words, using)
    ]
    exact = [entity for entity, fields in found if _has_just(entity, fields, words)]
    return refs_of(exact or [entity for entity, _fields in found])


def fields_of(model: type[Model]) -> list[str]:
    """What timelines declare for it, else what its own admin has; otherwise address and name of people; else unique texts."""
    label = model._meta.label_lower
    if declared := {name: None for known in registry if known.label == label for name in known.search}:
        return list(declared)
    own = site._registry.get(model) if apps.is_installed("django.contrib.admin") else None
    if own is not None and own.search_fields:
        return list(map(str, own.search_fields))
    if not issubclass(model, get_user_model()):
        columns = [column for column in model._meta.concrete_fields if column.unique and not column.primary_key]
        return [column.name for column in columns if isinstance(column, CharField)]
    person: Any = model
    names = {field.name for field in model._meta.get_fields()}
    return [name for name in (person.get_email_field_name(), person.USERNAME_FIELD) if name in names]


def _search(model: type[Model], fields: list[str], words: str, using: str) -> list[Model]:
    if not fields:
        return []
    searching: Any = type("Searching", (ModelAdmin,), {"search_fields": fields})(model, site)
    found, may_repeat = searching.get_search_results(None, model._base_manager.using(using).all(), words)
    return first_of(found.distinct() if may_repeat else found, MOST)


def _has_just(entity: Model, fields: list[str], words: str) -> bool:
    return any(str(getattr(entity, name.lstrip("^=@"), "")).casefold() == words.casefold() for name in fields)


def width_of_terminal() -> int:
    """How many columns there are: of the terminal, or as ``COLUMNS`` says; 80 where none is."""
    return shutil.get_terminal_size((NARROW, 24)).columns


def shortened(text: str, width: int) -> str:
    """The beginning of a text that is too long."""
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def wrapped(text: str) -> str:
    """Break lines between words so that they fit; what goes on is indented by two more. No word is broken."""
    width = max(width_of_terminal(), NARROWEST)
    return "\n".join(_broken(line, width) for line in text.split("\n"))


def _broken(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip(" ")))
    parts = textwrap.wrap(
        line, width, subsequent_indent=indent + "  ", break_long_words=False, break_on_hyphens=False, tabsize=4
    )
    return "\n".join(parts)


class Bar:
    """How far a command has come, drawn over itself, and wiped out at the end. A context manager."""

    def __init__(self, stdout: Any, total: int) -> None:
        self._stdout, self._total, self._drawn = stdout, total, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            self._stdout.write("\r" + " " * self._drawn + "\r", ending="")
            self._stdout.flush()

    def at(self, done: int) -> None:
        """Draw that so many are done."""
        if not self._stdout.isatty():
            return
        full = WIDTH if done >= self._total else WIDTH * done // self._total
        text = f"[{'#' * full}{'.' * (WIDTH - full)}] {done:,} / {max(done, self._total):,}"
        self._stdout.write("\r" + text.ljust(self._drawn), ending="")
        self._stdout.flush()
        self._drawn = len(text)


class PipedCommand(BaseCommand):
    """Base of commands that print much: where nobody reads on, they end without a traceback, with status 141."""

    def run_from_argv(self, argv: Sequence[str]) -> None:
        """Run as from the command line; what calls the command from Python is not concerned."""
        with ending_with_its_reader():
            super().run_from_argv(list(argv))


@contextmanager
def ending_with_its_reader() -> Iterator[None]:
    """End the process where what is printed within the block goes into a pipe that nobody reads any more."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python writes out what is left when it ends, which would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(ENDED_BY_ITS_READER) from None


@contextmanager
def telling_tasks(tell: Callable[[str], object]) -> Iterator[None]:
    """Tell each task within the block: key, entity, outcome, milliseconds. ``tell`` gets tasks committed together."""

    def heard(endings: Iterable[Ending], **_signal: Any) -> None:
        tell("\n".join(map(_line, endings)))

    signals = (tasks_ended, attempts_failed)
    for heard_of in signals:
        heard_of.connect(heard, weak=False)
    try:
        yield
    finally:
        for heard_of in signals:
            heard_of.disconnect(heard)


def _line(ending: Ending) -> str:
    which = f"#{ending.occurrence}" if ending.run_id and ending.occurrence else ""
    entity = f"{ending.entity_label} {ending.entity_id}".strip() or "-"
    outcome = ending.state if ending.state == "completed" else f"{ending.state} ({ending.reason_code})"
    took = "" if ending.seconds is None else f"  {ending.seconds * 1000:.0f} ms"
    return f"{ending.task_key}{which}  {entity}  {outcome}{took}"


def work_until_stopped(loop: Loop) -> None:
    """Work; stop cleanly on SIGTERM and SIGINT. ``CommandError`` if nothing of the database may be run here."""
    before = {number: signal.signal(number, lambda *_: loop.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    gc.freeze()  # What is loaded by now stays. To look through it for garbage would hold up tasks for some 50 ms each time.
    try:
        loop.work()
    except NotRunHere as error:
        raise CommandError(str(error)) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
