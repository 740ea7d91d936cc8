"""Which timelines a clock runs, and two blocks for tests: ``autostart`` and ``only_timelines``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from django.apps import AppConfig, apps
from django.conf import settings
from django.test import override_settings

from timeline.definition import Definition, Timeline
from timeline.features.recurring.verbs import NextBeginnings
from timeline.models import ScheduledTask, TimelineRun
from timeline.registry import registry
from timeline.suggestions import did_you_mean

if TYPE_CHECKING:
    from timeline.definition import Timeline


_OURS = "timeline."  # Modules of this package: its own timelines are what no test is about.


class ClockScope:
    """
    Which timelines a clock runs, what it ran, and what it left out.

    With names: these, and those that follow them (``after_run``). Without: all, but the clock starts only those of apps that
    the test is about: by its file, or by runs of their timelines. All, if it is about no app or ``only_timelines`` is used.
    """

    def __init__(self, only: Sequence[str | type[Timeline]], *, file: str, using: str) -> None:
        self._only = only
        self._file = file
        self._using = using
        self._names: frozenset[str] | None = None
        self._about: frozenset[str] | None = None
        self._ran: Counter[str] = Counter()
        self._left_out: dict[str, str] = {}

    def begin(self) -> None:
        """A move begins: look again at what the test names and is about; ``LookupError`` for an unknown name."""
        self._about = None
        self._names = frozenset(_followed(_named(name) for name in self._only)) if self._only else None

    def task_keys(self) -> list[str]:
        """Keys of the tasks that the clock runs."""
        keys = registry.task_keys()
        return keys if self._names is None else [key for key in keys if key.partition(".")[0] in self._names]

    def started(self, definitions: Iterable[Definition]) -> list[Definition]:
        """Of some timelines that start by the clock, those that are started in this test."""
        return [known for known in definitions if self._is_started(known)]

    def end(self, *, now: datetime) -> None:
        """A move has ended: see which timelines have due tasks that are not run, because the test names others."""
        if self._names is not None:
            open_tasks = ScheduledTask.objects.using(self._using).open().filter(scheduled_at__lte=now)
            for key in open_tasks.values_list("task_key", flat=True).distinct().order_by("task_key"):
                if (name := key.partition(".")[0]) not in self._names:
                    self._left_out[name] = "the test names other timelines"

    def add(self, tasks: Iterable[ScheduledTask]) -> None:
        """These were run."""
        self._ran.update(task.task_key.partition(".")[0] for task in tasks)

    def told(self) -> Iterator[str]:
        """What was run, and what was left out."""
        if self._ran:
            ran = ", ".join(f"{name} {count}{_by_clock(name)}" for name, count in sorted(self._ran.items()))
            yield f"Tasks run, by timeline: {ran}."
        yield from self.told_left_out()

    def told_left_out(self) -> Iterator[str]:
        """What was left out."""
        for name, why in sorted(self._left_out.items()):
            yield (
                f"Left out: {name}; {why}. To run it, name it: "
                f'StoryClock(only=["{name}"]) or @pytest.mark.timeline(only=["{name}"]).'
            )

    def _is_started(self, definition: Definition) -> bool:
        name = definition.name
        if self._names is not None:
            if name not in self._names:
                self._left_out[name] = "it starts by the clock, and the test names other timelines"
            return name in self._names
        if registry.is_replaced:
            return True
        if self._about is None:
            self._about = frozenset(self._apps())
        if self._about and _app_of(definition) not in self._about:
            self._left_out[name] = f"it starts by the clock, and the test is about {', '.join(sorted(self._about))}"
            return False
        self._left_out.pop(name, None)
        return True

    def _apps(self) -> Iterator[str]:
        """Labels of the apps that the test is about."""
        declaring = {_app_of(known) for known in registry if not known.cls.__module__.startswith(_OURS)}
        yield from {_label(_app_of_file(self._file))} & declaring - {""}
        runs = TimelineRun.objects.using(self._using).values_list("timeline", flat=True).distinct()
        ad_hoc = ScheduledTask.objects.using(self._using).filter(run=None).values_list("task_key", flat=True).distinct()
        for name in {*runs, *(key.partition(".")[0] for key in ad_hoc)}:
            known = next((known for known in registry if known.name == name), None)
            if known is not None and not known.cls.__module__.startswith(_OURS):
                yield _app_of(known)


class AheadInTest(NextBeginnings):
    """What a clock remembers of timelines that start by the clock, as far as they are started in its test."""

    scope: ClockScope

    def due(self, now: datetime) -> list[Definition]:
        """Timelines for which there may be something to do."""
        return self.scope.started(super().due(now))


def _named(given: str | type[Timeline]) -> str:
    """The name of a timeline that a test names; a class need not be known yet."""
    if isinstance(given, type) and issubclass(given, Timeline) and hasattr(given, "definition"):
        return given.definition.name
    known = {f"{app}.{known.name}": known.name for known in registry if (app := _app_of(known))}
    known |= {known.name: known.name for known in registry}
    if not isinstance(given, str) or given not in known:
        remedy = did_you_mean(given, known) or f"Known: {', '.join(sorted(set(known.values()))) or 'none'}."
        raise LookupError(f"There is no timeline {given!r}. {remedy}")
    return known[given]


def _followed(names: Iterable[str]) -> Iterator[str]:
    """Some timelines, and those that start when their runs end."""
    for name in names:
        yield name
        for known in registry:
            if known.name == name:
                yield from _followed(follower.name for follower, _start in registry.started_after(name, known.label))


def _app_of(definition: Definition) -> str:
    return _label(apps.get_containing_app_config(definition.cls.__module__))


def _app_of_file(file: str) -> AppConfig | None:
    """The app in whose folder a file is."""
    path = Path(file).resolve()
    around = [config for config in apps.get_app_configs() if path.is_relative_to(Path(config.path).resolve())]
    return max(around, key=lambda config: len(config.path), default=None)


def _label(config: AppConfig | None) -> str:
    return config.label if config is not None else ""


def _by_clock(name: str) -> str:
    return " (started by the clock)" if any(known.name == name and known.recurring for known in registry) else ""


@contextmanager
def autostart(wanted: bool) -> Iterator[None]:
    """
    Let events and inserted rows start runs within the block, or not. ``start()`` works always.

    Off keeps a host's existing tests and fixtures free of runs. For a whole test suite set
    ``TIMELINE = {"AUTOSTART": False}`` in its settings, or ``timeline_autostart = false`` for pytest.
    """
    with override_settings(TIMELINE={**getattr(settings, "TIMELINE", {}), "AUTOSTART": wanted}):
        yield


def only_timelines(*classes: type[Timeline]) -> AbstractContextManager[None]:
    """Let just these timelines be known within the block, whatever the host declares."""
    return registry.replaced(*classes)
