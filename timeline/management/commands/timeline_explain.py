"""``manage.py timeline_explain accounts.user 42``: an entity's timeline and the story of each task."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.management.options import add_database_option
from timeline.management.piping import PipedCommand
from timeline.models import EntityRef, ScheduledTask, TimelineRun, model_of, ref_of
from timeline.reading.explaining import explain
from timeline.reading.machines import MachineLine, machine_lines, told_machine
from timeline.reading.picturing import picture
from timeline.registry import registry

MOST_MACHINES = 20


class Command(PipedCommand):
    """Explains."""

    help = "Shows an entity's timeline and explains each of its tasks in plain sentences."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the entity, and optionally one of its tasks."""
        parser.add_argument("model", help="Model of the entity, e.g. accounts.user.")
        parser.add_argument("id", help="Its primary key.")
        parser.add_argument("--task", default="", help="Explain only tasks of this key, e.g. trial.remind.")
        add_database_option(parser)

    def handle(self, *args: Any, model: str, id: str, task: str, database: str, **options: Any) -> None:
        """Print where its machines are and the picture, then a paragraph for each task."""
        ref = _ref(model, id)
        tasks = ScheduledTask.objects.using(database).for_entity(ref).select_related("run", "cause").in_order()
        if task:
            tasks = tasks.filter(task_key=task)
        rows = list(tasks)
        machines = [] if task else _machines(ref, database)
        if not rows and not machines:
            problem = _("%(entity)s has no tasks. Check model, id and --database.")
            if task:
                problem = _("%(entity)s has no tasks of %(task)s. Check model, id and --database.")
            raise CommandError(problem % {"entity": ref, "task": task})
        now = story_now(database)
        for line in machines:
            self.stdout.write("\n".join(told_machine(line)))
            self.stdout.write("")
        self.stdout.write(picture(ref, now=now, using=database))
        for row in rows:
            self.stdout.write("")
            self.stdout.write(explain(row, now=now, using=database))


def _machines(ref: EntityRef, using: str) -> list[MachineLine]:
    """Where the latest runs of machines are; nothing is asked where there is no machine."""
    if not registry.machines():
        return []
    runs = TimelineRun.objects.using(using).for_entity(ref).exclude(state="").order_by("-started_at", "pk")
    return machine_lines(runs[:MOST_MACHINES], people=lambda _run: True, using=using)


def _ref(label: str, text: str) -> EntityRef:
    model = model_of(label)
    if model is None:
        problem = _("%(label)r is no installed model. Give it as app_label.model, e.g. accounts.user.")
        raise CommandError(problem % {"label": label})
    try:
        key = model._meta.pk.to_python(text)
    except ValidationError:
        problem = _("%(text)r is no primary key of %(model)s.")
        raise CommandError(problem % {"text": text, "model": model._meta.label}) from None
    return ref_of(EntityRef(model._meta.label_lower, str(key)))
