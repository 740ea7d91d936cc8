"""``manage.py timeline_explain accounts.user 42``: the timeline of an entity, a run or an address; the story of each task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.features.machines.reading import MachineLine, machine_lines, told_machine
from timeline.management.shared import MOST, PipedCommand, add_database_option, found_by, wrapped
from timeline.models import EntityRef, ScheduledTask, TimelineRun, model_of, ref_of
from timeline.models.entities import load_entities
from timeline.reading.explanation import explain
from timeline.reading.outlook import empty_dates, why_no_tasks
from timeline.reading.text_pictures import picture
from timeline.registry import registry
from timeline.suggestions import with_meant
from timeline.told_times import told_apart

MOST_MACHINES: Final = 20
MOST_ENDED: Final = 20  # Of a timeline about no entity, which may have run for years.


class Command(PipedCommand):
    """Explains."""

    help = "Shows an entity's timeline and explains each of its tasks in plain sentences."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the entity, and optionally one of its tasks."""
        parser.add_argument(
            "model",
            help="Model of the entity, e.g. accounts.user. Without its key: an email address, or what else the admin's search "
            "finds. Or the id of a run or of a task. Or the name of a timeline that is about no entity.",
        )
        parser.add_argument(
            "id", nargs="?", help="Its primary key, or what else names it: a reference, an email address."
        )
        parser.add_argument("--task", default="", help="Explain only tasks of this key, e.g. trial.remind.")
        add_database_option(parser)

    def handle(self, *args: Any, model: str, id: str | None, task: str, database: str, **options: Any) -> None:
        """Print what is meant: of an entity where its machines are and the picture, then a paragraph for each task."""
        if id is None and (rows := _rows_of(model, task, database)) is not None:
            return self._tell(rows, story_now(database), database)
        self._explain(_ref(model, id, database) if id is not None else _found(model, database), task, database)
        return None

    def _explain(self, ref: EntityRef, task: str, database: str) -> None:
        tasks = ScheduledTask.objects.using(database).for_entity(ref).select_related("run", "cause").in_order()
        if task:
            tasks = tasks.filter(task_key=task)
        rows = list(tasks)
        machines = [] if task else _machines(ref, database)
        if not rows and not machines:
            raise CommandError(_nothing(ref, task, database))
        now = story_now(database)

        def tell() -> Iterator[str]:
            yield from ("\n".join(told_machine(line)) for line in machines)
            yield picture(ref, now=now, using=database)
            yield from () if task else empty_dates(ref, using=database)
            yield from (explain(row, now=now, using=database) for row in rows)

        self.stdout.write(wrapped("\n\n".join(told_apart(tell))))

    def _tell(self, rows: Iterable[ScheduledTask], now: datetime, database: str) -> None:
        told = told_apart(lambda: [explain(row, now=now, using=database) for row in rows])
        self.stdout.write(wrapped("\n\n".join(told)))


def _nothing(ref: EntityRef, task: str, using: str) -> str:
    """Say that there is no row, and why."""
    if not task:
        return "\n".join([_("%(entity)s has no tasks.") % {"entity": ref}, why_no_tasks(ref, using=using)])
    if task in registry.task_keys() and (empty := list(empty_dates(ref, using=using))):
        return "\n".join([_("%(entity)s has no tasks of %(task)s.") % {"entity": ref, "task": task}, *empty])
    problem = _("%(entity)s has no tasks of %(task)s. Check model, id and --database.")
    known = [] if task in registry.task_keys() else registry.task_keys()
    return str(with_meant(problem, task, known)) % {"entity": ref, "task": task}


def _rows_of(said: str, task: str, using: str) -> list[ScheduledTask] | None:
    """The tasks of a run, one task, or those of a timeline about no entity; None: it is none of these."""
    tasks = ScheduledTask.objects.using(using).select_related("run", "cause")
    kept = tasks.filter(task_key=task) if task else tasks
    with suppress(ValueError):
        key = UUID(said)
        rows = list(kept.filter(run=key).in_order()) or list(kept.filter(pk=key))
        return _some(rows, _("There is no run and no task %(id)s here.") % {"id": said})
    definition = next((known for known in registry if known.name == said), None)
    if definition is None:
        return None
    if definition.label:
        problem = _("%(timeline)s is about %(label)s. Say about which one: timeline_explain %(label)s and its key.")
        raise CommandError(problem % {"timeline": said, "label": definition.label})
    of_timeline = kept.for_entity(None).of_timeline(said)
    ended = of_timeline.final().order_by("-scheduled_at", "-pk")[:MOST_ENDED]
    rows = [*list(ended)[::-1], *of_timeline.open().in_order()]
    return _some(rows, _("%(timeline)s has no tasks here.") % {"timeline": said})


def _some(rows: list[ScheduledTask], problem: str) -> list[ScheduledTask]:
    if not rows:
        raise CommandError(problem)
    return rows


def _found(words: str, using: str) -> EntityRef:
    """The one entity that words find."""
    found = found_by(words, using=using)
    if len(found) == 1:
        return found[0]
    if found:
        raise _several(found, words, using)
    if words in {each.label for each in registry}:
        raise CommandError(_("Say about which one: timeline_explain %(label)s and its key.") % {"label": words})
    problem = str(
        _("%(words)r finds nothing. Give a model and a key, words that the admin's search finds, or the id of a run.")
    )
    known = [*(each.name for each in registry), *(each.label for each in registry if each.label)]
    raise CommandError(str(with_meant(problem, words, known)) % {"words": words})


def _several(found: Sequence[EntityRef], words: str, using: str) -> CommandError:
    """Say for each what to call."""
    there = load_entities(found[:MOST], using=using)
    lines = [f"  manage.py timeline_explain {ref}  {there.get(ref, '')}".rstrip() for ref in found[:MOST]]
    return CommandError("\n".join([_("Several are found by %(words)r. Say which:") % {"words": words}, *lines]))


def _machines(ref: EntityRef, using: str) -> list[MachineLine]:
    """Where the latest runs of machines are; nothing is asked where there is no machine."""
    if not registry.machines():
        return []
    runs = TimelineRun.objects.using(using).for_entity(ref).exclude(state="").order_by("-started_at", "pk")
    return machine_lines(runs[:MOST_MACHINES], people=lambda _run: True, using=using)


def _ref(label: str, text: str, using: str) -> EntityRef:
    model = model_of(label)
    if model is None:
        problem = _("%(label)r is no installed model. Give it as app_label.model, e.g. accounts.user.")
        known = [each.label for each in registry if each.label]
        raise CommandError(str(with_meant(problem, label, known)) % {"label": label})
    try:
        key = model._meta.pk.to_python(text)
    except ValidationError:
        found = [each for each in found_by(text, using=using) if each.label == model._meta.label_lower]
        if len(found) == 1:
            return found[0]
        if found:
            raise _several(found, text, using) from None
        problem = _("%(text)r is no primary key of %(model)s, and nothing is found by it.")
        raise CommandError(problem % {"text": text, "model": model._meta.label}) from None
    return ref_of(EntityRef(model._meta.label_lower, str(key)))
