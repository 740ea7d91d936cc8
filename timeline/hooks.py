"""
Where features take part in the life of a task. The core asks here, and imports no feature.

A feature is a folder below ``timeline/features/`` that is named in ``FEATURES``. What it declares about definitions stands in
its module ``rules`` (a ``Rules``, asked when a class is declared, before models are there). What it does with rows stands in
its module ``hooks`` (a ``Hooks``). What people meet of it stands in modules that ``of_features`` names. It may have any of
these, or none. Each field is a tuple of functions; the core calls those of all features, in the order of ``FEATURES``. An app
below ``timeline`` takes part in the same way, after them, if ``hooks`` of its configuration names its ``Hooks``.
``now`` is story time, and ``using`` the alias of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar
from uuid import UUID

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from timeline import features
from timeline.features import FEATURES

if TYPE_CHECKING:
    from django.db.models import Aggregate, Model, QuerySet

    from timeline.definition import Definition, Task, Timeline
    from timeline.dispatch.claim import ClaimedBatch
    from timeline.engine.attempts import Attempt
    from timeline.exceptions import Rest
    from timeline.lifecycle import Reason
    from timeline.models import ScheduledTask, TimelineRun
    from timeline.planning.answers import TaskOutlook
    from timeline.reasons import Sentence
    from timeline.store.changes import Write
    from timeline.store.poll_queries import Signed

    Problem = tuple[str, str]  # What is wrong, and the remedy.
    Asked = TypeVar("Asked")
    Guarded: TypeAlias = tuple[Callable[[Any], object], Asked]
    Kind = tuple[UUID | None, str]  # Id of a run, key of a task.
    Refusal: TypeAlias = Reason | Write | Rest | BaseException
    OfClass = Callable[[Definition], Iterable[Problem]]
    OfTask = Callable[[Definition, Task[Any, ..., Any]], Iterable[Problem]]
    OfModel = Callable[[Definition, type[Model]], Iterable[Problem]]
    Told = TypeVar("Told", bound="Rules | Hooks")
    Around: TypeAlias = Callable[..., AbstractContextManager[object]]

_NOTHING: Final = nullcontext()
_NAMED: Final = ("options", "verbs", "flags", "parts", "functions")  # What is in these begins with a name.


@dataclass(frozen=True, kw_only=True)
class Rules:
    """
    What a feature asks of a definition.

    Args:
        options: Options of ``@task`` → default. They are read as ``task.options.<name>``.
        of_class: Problems of a class, by all that can be seen without models.
        of_task: Problems of one of its tasks.
        of_parts: Problems of other things that a class declares, each with its name.
        of_model: Problems of a class with the model of its entity.
        of_task_and_model: Problems of one of its tasks with that model.
        verbs: What a handler calls on ``self``, by its name → what that does, given the context and the arguments.
        occurrences: The outlook of a task whose rows another one fans out, given its rows and times; one feature has it.
        of_others: Problems that a class has with the others that are registered, given with their models.
        events: Further events that a class knows: a label and names of events, as often as there are any.
    """

    options: tuple[tuple[str, object], ...] = ()
    of_class: tuple[OfClass, ...] = ()
    of_task: tuple[OfTask, ...] = ()
    of_parts: tuple[Callable[[Definition], Iterable[tuple[str, Problem]]], ...] = ()
    of_model: tuple[OfModel, ...] = ()
    of_task_and_model: tuple[Callable[[Definition, Task[Any, ..., Any], type[Model]], Iterable[Problem]], ...] = ()
    verbs: tuple[tuple[str, Callable[..., Any]], ...] = ()
    occurrences: tuple[Callable[..., TaskOutlook], ...] = ()
    of_others: tuple[Callable[..., Iterable[Problem]], ...] = ()
    events: tuple[Callable[[Definition], Iterable[tuple[str, Iterable[str]]]], ...] = ()


@dataclass(slots=True)
class Poll:
    """
    A poll, as features see it.

    Args:
        memory: What a feature remembers in this process from poll to poll, by a key of its own.
        signed: What was read before the poll.
    """

    clock: Callable[[], datetime]
    using: str
    signed: Signed
    memory: dict[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """
    Where tasks come from that cannot be had by kind and priority alone. ``has``: whether a task comes from here alone; asked
    of each task, in C.
    """

    @property
    def has(self) -> Callable[[ScheduledTask], object]: ...

    def claim(self, *, limit: int, now: datetime, using: str) -> list[ClaimedBatch]:
        """Claim available tasks, at most so many of a kind."""

    def is_any_ready(self, *, using: str) -> bool:
        """Whether the next claim finds something."""

    def groups(self, queue: str | None, *, using: str) -> Iterable[tuple[str, Callable[..., list[Attempt]]]]:
        """Kinds that have something available, with what begins a group: ``begin(most=, worker=, retried=, now=, using=)``."""

    def is_free(self, task: ScheduledTask, *, using: str) -> bool:
        """Whether this available task could be claimed now."""

    def claim_one(self, task: ScheduledTask, token: UUID, *, now: datetime, using: str) -> ScheduledTask:
        """Claim the one whose turn it is among those that compete with this one."""


@dataclass(frozen=True)
class SomeColumns:
    """
    Columns that only some new rows have, filled for many rows at once.

    Args:
        names: As the plans of rows name them; the first is in each plan that has any.
        fill: Given (entity, plan) of each row of one insertion: column → a value for each row.
    """

    names: tuple[str, ...]
    fill: Callable[..., Mapping[str, list[Any]]]


class Kept(Protocol):
    """
    Which tasks are kept from running. ``parts``: names of the optional lines of statements that leave out some of a kind.
    ``is_any``: whether anything is kept at all.
    """

    @property
    def parts(self) -> frozenset[str]: ...

    @property
    def is_any(self) -> bool: ...

    def covers(self, task_key: str) -> bool:
        """Whether all tasks of a kind are kept."""


@dataclass(frozen=True, kw_only=True)
class Hindrance:
    """
    What keeps tasks from running though nothing about themselves does.

    Args:
        kept: Given ``using``, read what it keeps, for statements that take tasks.
        in_force: A query for all of it, to be asked together with something else, up to a bound.
        words: Given tasks, what that query has found (None: nobody has asked it) and ``using``: id of a task → until when it
            is kept, in a few words. One statement at most.
        told: Given a task, ``people`` (whether to tell who decided) and ``using``: all about it, in sentences.
        end: Given ``now`` and ``using``, end all of it whose time is over.
        next_end: Given ``now``, ``until`` and ``using``, when the next of it ends by itself, if not after ``until``.
        newest: Given ``most`` and ``using``, the newest of it, with up to three figures that are others once some of it is.
    """

    kept: Callable[..., Kept]
    in_force: Callable[..., QuerySet[Any]]
    words: Callable[..., Mapping[UUID, str]]
    told: Callable[..., Iterable[str]]
    end: Callable[..., object]
    next_end: Callable[..., datetime | None]
    newest: Callable[..., tuple[QuerySet[Any], Sequence[Aggregate]]]


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """
    What a feature does with rows. A hook on the way of each task is *guarded*: a pair of what is asked of each item, in C
    (``attrgetter("task.slot")``), and the function, called if any says yes. So a feature that is not used costs almost nothing.

    Polls:
        chores: Guarded by the poll. Done once in each poll, by whoever polls, before tasks are claimed.
        notes: Act on notes that others have left for a poll; gives how many tasks became due.
        long_work: Guarded by the poll. A piece of work that many polls share; gives how many rows it changed.
        sources: See ``Source``.
        wakes: Told by each process that polls, once, before its first poll.
        between: A short piece of upkeep, done by a process that polls in its pauses; gives whether there is more to do.
        batches: Told by a Celery worker before it runs the tasks of a message.
        maintains: Upkeep in whole, by ``timeline.maintain``.

    An attempt:
        flags: Facts that the precheck reads with the runs: name → condition in SQL.
        flagged: Prechecks for when such a fact holds, or was not read: name → check.
        prechecks: Guarded by attempts; given ``now`` and ``using``. Those that must not run now: id of the task → what becomes
            of it. A ``Reason``: it is cancelled (with the code ``hold``: given back, due as before). A ``Rest``: it is put off
            until ``due_at``, and that is no failure. A ``Write``: that is its outcome. An exception: the attempt has failed.
        admissions: The same, asked last, of those that count what they let in.
        before_entry: Guarded by the attempt. Asked before a handler is entered; an outcome: it is not.
        contexts: Guarded by the attempt. Give the context of a handler what it needs.
        parts: Of a context, made when they are first used: name → what makes one.
        errors: Guarded by the attempt. Decide what an error means for the outcome. ``together``: it is that of several tasks.
        losses: The same where the last worker of a task was lost.

    An outcome (of several tasks at once):
        releases: Guarded by writes. Change outcomes before anything is locked.
        decisions: Change outcomes that are not plain, under the locks of entities and runs.
        follows: Write what follows from outcomes that were written; give the ids of runs that changed by it.
        discards: Told of tasks that were discarded, in that transaction.
        still_open: Of tasks that have ended: kinds of which others are still open, so that nothing follows yet.

    Rows:
        columns: Guarded by the options of a task. Columns of its new rows that come from these.
        inherits: Guarded by the row before. Columns that a next revision has from it; ``is_known``: its task is declared.
        some_columns: See ``SomeColumns``.
        new_rows: Guarded by rows. Set columns of new rows before they are inserted.
        ends: Told of tasks that were cancelled, moved or run early by somebody, in that transaction.
        run_ends: Guarded by runs. Told of runs that have ended.
        instances: Guarded by runs. Told of runs that have begun or moved, with the instance of the entity that the caller has.
        reconciled: Told of runs that somebody had reconciled, so that what shows them is true again.
        deletions: Told of an entity that was deleted.
        successions: Let new revisions take over what those before them have; change the writes that end these.
        redrives: Told of tasks that have ended before the next revisions of them are inserted.
        relabels: Change what names entities by the old label of a model: (old, new, ``using``). Before any task is locked.
        relabels_later: The same of what hangs on tasks, once no rows collide; ``change`` gives rows the label in a ``column``.
        blanks: Rows about entities, by model, with what their columns become when an entity is erased.
        functions: Functions that its statements call, kept in databases that have such: its name (without ``timeline_``), and
            what makes the text, given ``using``; None: that is in ``function_<name>`` among the statements.
        migrated: Told that a database was migrated or flushed, and which tables it has.

    Looking on (``Around``: a context manager, entered before something is done, and left after it):
        emits: ``Around`` the writes of an event; given its name.
        heard: Guarded by the name of an event. Told of new ones, given what was said of them, entity → id of its event for
            entities that are locked, and all names of each of these. It writes in their transaction.
        recorded: Told of ids whose effects come later, in the transaction of their rows: new events, new runs that no event
            began, and new tasks of Django's framework.
        calls: ``Around`` the call of a handler; given its attempts, which are several if it is called for many.
        undone: Guarded by attempts. Told that an error has undone their call, or its commit; given the error.
        left: Guarded by attempts. Told that a worker has done with them.
        steps: ``Around`` a step that is done, with its record; given its name, without a key.
        polled: Told of a poll that found something: how many seconds it took, and what it did, by name.
        posted: Told of webhooks whose answers are written: deliveries as they were claimed, each with its answer.

    Reading:
        sentences: What the feature says of why a task came to where it is; told to people in their language.
        hindrances: See ``Hindrance``.
        origins: Lines on what a task belongs to, such as the state of its run, for its story; given the task and ``now``.
        asks: What waits for a person, beside dead letters and what rests: a name in ``Waiting`` and the rows, in the order of
            the index that finds them. Given the tasks that the reader sees, whether they see all ``runs`` and ``holds``,
            and ``now``.
        explains: Lines about a task that is due and waits, or that has ended.
        troubles: What is wrong beside tasks, in sentences, for health and the doctor; given ``now``, ``using`` and whether
            the database ``is_polled``. Nothing is asked where the feature is not used.
        inventories: Of definitions, what the inventory says of their tasks: key → fields of ``TaskEntry``.
    """

    chores: tuple[Guarded[Callable[[Poll], object]], ...] = ()
    notes: tuple[Callable[..., int], ...] = ()
    long_work: tuple[Guarded[Callable[[Poll], int]], ...] = ()
    sources: tuple[Source, ...] = ()
    wakes: tuple[Callable[[str], None], ...] = ()
    between: tuple[Callable[[Callable[[], datetime], str], bool], ...] = ()
    batches: tuple[Callable[[str], None], ...] = ()
    maintains: tuple[Callable[[str], None], ...] = ()

    flags: tuple[tuple[str, str], ...] = ()
    flagged: tuple[tuple[str, Callable[..., Mapping[UUID, Refusal]]], ...] = ()
    prechecks: tuple[Guarded[Callable[..., Mapping[UUID, Refusal]]], ...] = ()
    admissions: tuple[Guarded[Callable[..., Mapping[UUID, Refusal]]], ...] = ()
    before_entry: tuple[Guarded[Callable[[Attempt, str], Write | None]], ...] = ()
    contexts: tuple[Guarded[Callable[[Timeline, Attempt, str], None]], ...] = ()
    parts: tuple[tuple[str, Callable[[Timeline, Attempt, str], Any]], ...] = ()
    errors: tuple[Guarded[Callable[..., Write]], ...] = ()
    losses: tuple[Callable[..., Write], ...] = ()

    releases: tuple[Guarded[Callable[[Sequence[Write]], Sequence[Write]]], ...] = ()
    decisions: tuple[Callable[..., Sequence[Write]], ...] = ()
    follows: tuple[Callable[..., Set[UUID]], ...] = ()
    discards: tuple[Callable[..., object], ...] = ()
    still_open: tuple[Callable[..., set[Kind]], ...] = ()

    columns: tuple[Guarded[Callable[[str, Task[Any, ..., Any]], Mapping[str, Any]]], ...] = ()
    inherits: tuple[Guarded[Callable[..., Mapping[str, Any]]], ...] = ()
    some_columns: tuple[SomeColumns, ...] = ()
    new_rows: tuple[Guarded[Callable[..., None]], ...] = ()
    ends: tuple[Callable[..., None], ...] = ()
    run_ends: tuple[Guarded[Callable[..., object]], ...] = ()
    instances: tuple[Guarded[Callable[[object, Sequence[TimelineRun]], None]], ...] = ()
    reconciled: tuple[Callable[..., object], ...] = ()
    deletions: tuple[Callable[..., None], ...] = ()
    successions: tuple[Callable[..., list[Write]], ...] = ()
    redrives: tuple[Callable[..., None], ...] = ()
    relabels: tuple[Callable[..., None], ...] = ()
    relabels_later: tuple[Callable[..., None], ...] = ()
    blanks: tuple[tuple[type[Model], Mapping[str, Any]], ...] = ()
    functions: tuple[tuple[str, Callable[[str], str] | None], ...] = ()
    migrated: tuple[Callable[..., None], ...] = ()

    emits: tuple[Around, ...] = ()
    heard: tuple[Guarded[Callable[..., object]], ...] = ()
    recorded: tuple[Callable[..., None], ...] = ()
    calls: tuple[Around, ...] = ()
    undone: tuple[Guarded[Callable[[Sequence[Attempt], BaseException], None]], ...] = ()
    left: tuple[Guarded[Callable[[Sequence[Attempt]], None]], ...] = ()
    steps: tuple[Around, ...] = ()
    polled: tuple[Callable[..., None], ...] = ()
    posted: tuple[Callable[..., None], ...] = ()

    sentences: tuple[Sentence, ...] = ()
    hindrances: tuple[Hindrance, ...] = ()
    origins: tuple[Callable[..., Iterator[str]], ...] = ()
    asks: tuple[Callable[..., Iterator[tuple[str, QuerySet[Any]]]], ...] = ()
    explains: tuple[Callable[..., Iterator[str]], ...] = ()
    troubles: tuple[Callable[..., Iterator[str]], ...] = ()
    inventories: tuple[Callable[..., Mapping[str, Mapping[str, object]]], ...] = ()


def asked_for(guarded: Iterable[Guarded[Asked]], items: Iterable[object]) -> list[Asked]:
    """Those of some guarded hooks that are for any of these items."""
    return [call for is_for, call in guarded if any(map(is_for, items))]


def around(several: Sequence[Around], given: object) -> AbstractContextManager[object]:
    """All that stands around something, as one. Where nothing does, it is always the same, and costs next to nothing."""
    if not several:
        return _NOTHING
    return several[0](given) if len(several) == 1 else _in_turn(several, given)


@contextmanager
def _in_turn(several: Sequence[Around], given: object) -> Iterator[None]:
    with ExitStack() as stack:
        for one in several:
            stack.enter_context(one(given))
        yield


@cache
def rules() -> Rules:
    """What all features ask of definitions."""
    return _merged(Rules, _told(Rules, "rules", "RULES"))


@cache
def hooks() -> Hooks:
    """What all features and apps do with rows. Not before the models are there."""
    return _merged(Hooks, chain(_told(Hooks, "hooks", "HOOKS"), _of_apps()))


def check_features() -> None:
    """
    Load what all features and apps declare. Raises ``ImproperlyConfigured`` by the name of the first that cannot be loaded,
    names a column that is not there, or has a column or a name that another one has.
    """
    owners: dict[tuple[str, str], str] = {}
    for feature, declared in chain(_each(rules, "rules"), _each_app(), _each(hooks, "hooks")):
        for whose, name in _names(feature, declared):
            if (owner := owners.setdefault((whose, name), feature)) != feature:
                raise _wrong(feature, f"has {name!r} among its {whose}, as {owner!r} has", "give it another name")


def _each(load: Callable[[], object], module: str) -> Iterator[tuple[str, Rules | Hooks]]:
    load()
    for feature in FEATURES:
        if (found := _loaded(feature, module)) is not None:
            yield feature, getattr(found, module.upper())


def _each_app() -> Iterator[tuple[str, Hooks]]:
    for config in apps.get_app_configs():
        if config.name.startswith("timeline.") and (named := getattr(config, "hooks", "")):
            try:
                yield config.name, import_string(named)
            except Exception as error:
                raise _wrong(config.name, f"cannot be loaded: {error!r}", f"see to {named}") from error


def _names(feature: str, declared: Rules | Hooks) -> Iterator[tuple[str, str]]:
    """What nobody else may have, each with its kind."""
    for kind in _NAMED:
        yield from ((kind, name) for name, _what in getattr(declared, kind, ()))
    if isinstance(declared, Hooks):
        tasks = apps.get_model("timeline", "ScheduledTask")
        for model, names in [*((tasks, some.names) for some in declared.some_columns), *declared.blanks]:
            known = {field.name for field in model._meta.fields}
            for name in names:
                if name not in known:
                    raise _wrong(feature, f"names {name!r}, no column of {model.__name__}", "see to its HOOKS")
                yield f"columns of {model.__name__}", name


def verb(name: str) -> Callable[..., Any]:
    """What ``self.<name>(…)`` does. Raises ``ImproperlyConfigured`` if no feature has it."""
    found = dict(rules().verbs).get(name)
    if found is None:
        raise ImproperlyConfigured(
            f"self.{name}(…) belongs to a feature of timeline that is not in FEATURES: name it there."
        )
    return found


def feature_of_option(name: str) -> str:
    """The feature that has this option of ``@task``, and is there, though not in the list; empty: none."""
    for feature in (found.name for found in iter_modules(features.__path__) if found.name not in FEATURES):
        if find_spec(f"timeline.features.{feature}.rules") is None:
            continue
        if name in dict(import_module(f"timeline.features.{feature}.rules").RULES.options):
            return feature
    return ""


def of_features(module: str, name: str) -> Iterator[Any]:
    """
    What each feature has by this name in a module of its folder, where it has that module: ``PAGES`` and ``DECISIONS`` in
    ``pages``, ``ROUTES`` in ``api``, ``CHECKS`` in ``checks``. Only who shows them asks, so that a site without an API loads
    none.
    """
    for feature in FEATURES:
        if (found := _loaded(feature, module)) is not None:
            yield getattr(found, name, ())


def _of_apps() -> Iterator[Hooks]:
    for config in apps.get_app_configs():
        if config.name.startswith("timeline.") and (named := getattr(config, "hooks", "")):
            yield import_string(named)


def _merged(what: type[Told], those: Iterable[Told]) -> Told:
    told = list(those)
    return what(
        **{each.name: tuple(chain.from_iterable(getattr(one, each.name) for one in told)) for each in fields(what)}
    )


def _told(what: type[Told], module: str, name: str) -> Iterator[Told]:
    for feature in FEATURES:
        if (found := _loaded(feature, module)) is None:
            continue
        declared = getattr(found, name, None)
        if not isinstance(declared, what):
            raise _wrong(feature, f"has no {name} of type {what.__name__}", f"see to {found.__name__}")
        yield declared


def _loaded(feature: str, module: str) -> ModuleType | None:
    """A module of a feature; None: it has none of this name. Raises ``ImproperlyConfigured`` by the name of the feature."""
    folder = f"timeline.features.{feature}"
    if find_spec(folder) is None:
        raise _wrong(feature, "is not there", f"make the folder {folder}, or take the name out of FEATURES")
    if find_spec(f"{folder}.{module}") is None:
        return None
    try:
        return import_module(f"{folder}.{module}")
    except Exception as error:
        raise _wrong(feature, f"cannot be loaded: {error!r}", f"see to {folder}.{module}") from error


def _wrong(feature: str, problem: str, remedy: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"The feature {feature!r} of timeline {problem}: {remedy}.")
