"""``Timeline``: the class a team subclasses, and what is known of it once it is declared."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from django.db.models import Model, QuerySet

from timeline.definition.check_timelines import NAMED, check_names, check_shape
from timeline.definition.context import RESERVED, Context, StepContext, step_under_way
from timeline.definition.definitions import Definition
from timeline.definition.handlers import Task
from timeline.definition.names import MAX_NAME, check_class_once, is_name, keyword_problems, read_titles, snake
from timeline.definition.starts import AfterRun, Created
from timeline.exceptions import DefinitionError, TimelineError
from timeline.features.recurring.declaration import Recurring
from timeline.features.steps.batches import Batches, check_step, each, each_async
from timeline.features.steps.declaration import BoundStep, Runner, Step, Teller, check_progress
from timeline.features.waits.declaration import THEIR_OWN, Waiter, event_wait, nothing_to_wait
from timeline.hooks import verb
from timeline.timing.keywords import known_units

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from timeline.models import Event, ScheduledTask, TimelineRun


Declared = TypeVar("Declared", Task[Any, ..., Any], Step[Any, ..., Any])

Row = TypeVar("Row", bound=Model)
Taken = TypeVar("Taken", bound=Mapping[str, float] | None)


def unless_declared(option: Any, left_out: Any) -> Any:
    """An option that came later than tasks of its name: one that is called so keeps its key, and the option is left out."""
    return left_out if isinstance(option, Task | Step) else option


def names_of(key: Any) -> Any:
    """Write one name, or several, as several."""
    return (key,) if key and isinstance(key, str) else key or ()


def declared(cls: type, kind: type[Declared]) -> dict[str, Declared]:
    """The tasks, or the steps, of a class and of those that it inherits from, in the order declared."""
    found: dict[str, Declared] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            found.pop(name, None)
            if isinstance(value, kind):
                found[name] = value
    return found


def by_stored_name(cls: type, tasks: Mapping[str, Task[Any, ..., Any]]) -> dict[str, Task[Any, ..., Any]]:
    """Tasks by the names that their rows have, in the order declared; ``DefinitionError`` names a wrong ``was``."""
    found: dict[str, Task[Any, ..., Any]] = {}
    for method, task in tasks.items():
        was = task.options.was
        if was and not is_name(was):
            remedy = f"Use the name it had before: lower-case letters, digits and _, {MAX_NAME} at most."
            raise DefinitionError(cls.__name__, f"has was = {was!r}.", remedy, method)
        name = was or method
        if name in found or (was and was in tasks):
            remedy = f"Leave was={name!r} with one of them, or take it out."
            raise DefinitionError(cls.__name__, f"was {name!r}, and so is another task.", remedy, method)
        found[name] = task
    return found


class Timeline:
    """
    The future of an entity, declared.

    A subclass names its entity and decorates methods with ``@task``. An instance is the context of one execution:
    ``self.task``, ``self.run``, ``self.event``, ``self.now``, ``self.lost``, ``self.idempotency_key`` (see ``Context``). A
    handler declared with ``bulk`` has ``self.now`` and, for each entity, such a context in ``self.tasks[entity]``.
    In a unit test, ``Trial().remind(user)`` calls the plain method; pass what it reads: ``Trial(now=…)``.
    Handlers call methods declared with ``@step``; a step that is done is skipped. Within a step there is ``self.step``.
    ``self.each(…)`` calls a step for many rows, ``self.progress(…)`` shows people how far a handler is.
    ``self.fan_out(…)`` makes another task be done once for each of several things. ``self.sleep(days=2)`` lets the task rest
    for so long.
    A class declared ``abstract=True`` only lends its tasks to subclasses.
    """

    entity: ClassVar[str | None] = None
    """Model of the entity, ``"app.Model"``; None for a system timeline, whose handlers take no entity."""
    name: ClassVar[str] = ""
    """First half of its task keys; stored, so keep it when the class is renamed. Empty: the class name in snake case."""
    starts_on: ClassVar[str | Created | AfterRun | Recurring | tuple[str | Created | AfterRun | Recurring, ...]] = ()
    """Events that start a run, ``created()``, ``after_run(…)``, ``daily(…)`` and the like. Empty: only ``start()`` does."""
    exits: ClassVar[Mapping[str, str]] = {}
    """Events that end a run → name of the exit."""
    time_zone: ClassVar[str] = ""
    """Field of the entity with the name of its time zone, for calendar days and for handlers. Empty: the site's."""
    language: ClassVar[str] = ""
    """Field of the entity with the code of its language, for handlers. Empty: the site's."""
    owner: ClassVar[str] = ""
    """Foreign keys from the entity to the user who may see its rows, ``"account.user"``. Empty: only staff may."""
    shadow: ClassVar[bool] = False
    """Do everything except entering handlers: a task that would have run is completed, with the reason ``shadow``."""

    once: ClassVar[bool] = False
    """One run ever for an entity (and key): none begins again, even if that run has ended and was pruned."""
    key: ClassVar[str | tuple[str, ...]] = ()
    """Fields of the event's payload that distinguish runs of an entity, ``("payment_id", "attempt")``: run key ``42:3``."""

    search: ClassVar[str | tuple[str, ...]] = ()
    """Fields by which people find the entity in the admin, ``("email", "name")``, as in ``ModelAdmin.search_fields``. Empty:
    those of its own admin."""

    titles: ClassVar[Mapping[Any, Any]] = {}
    """Event, state, exit or condition → what people call it, as ``gettext_lazy`` gives it:
    ``{"payment.configured": _("the customer paid")}``. Pages, ``explain`` and the API show it beside the name."""

    again: ClassVar[bool] = False
    """If starting events come while a run is open, one more run begins when it has finished: one, however many came."""

    definition: ClassVar[Definition]

    # Workers of others run its tasks, under any name: no worker of ours takes one.
    _elsewhere: ClassVar[bool] = False

    _options = NAMED

    def __init_subclass__(cls, *, abstract: bool = False, **extra: Any) -> None:
        check_class_once(cls)
        for problem, remedy in keyword_problems(extra, cls._options):
            raise DefinitionError(cls.__name__, problem, remedy)
        super().__init_subclass__(**extra)
        check_names(cls, cls.__mro__[: cls.__mro__.index(Timeline)], cls._options)
        if abstract:
            return
        starts_on, conduct = cls.starts_on, cls._conduct()
        timers = conduct["timers"].tasks if conduct else {}
        cls.definition = Definition(
            cls=cls,
            name=cls.__dict__.get("name") or snake(cls.__name__),
            label=(cls.entity or "").lower() if isinstance(cls.entity, str | None) else "",
            starts_on=starts_on if isinstance(starts_on, tuple) else (starts_on,),
            exits=cls.exits,
            tasks={**by_stored_name(cls, declared(cls, Task)), **timers},
            steps=declared(cls, Step),
            shadow=cls.shadow,
            once=unless_declared(cls.once, False),
            again=unless_declared(cls.again, False),
            key=names_of(unless_declared(cls.key, ())),
            search=names_of(unless_declared(cls.search, ())),
            titles=read_titles(unless_declared(cls.titles, {})),
            payloads=cls._payload_types(),
            **conduct,
        )
        check_shape(cls.definition)

    @classmethod
    def _conduct(cls) -> dict[str, Any]:
        """What it does by itself, such as move by a table: further fields of its definition."""
        return {}

    @classmethod
    def _brought_back_by(cls) -> str:
        """What lets a process know a task of it that it does not know, for people; empty: the class has to declare it."""
        return ""

    @classmethod
    def _title_of(cls, name: str) -> str:  # noqa: ARG003 (for others)
        """What people call a task of it that it does not declare; empty: it has no title."""
        return ""

    @classmethod
    def _when_lost(cls, write: Any, *, now: datetime) -> Any:  # noqa: ARG003 (for others)
        """What becomes of a lost attempt of one of its tasks, given what the rescuer would write."""
        return write

    @classmethod
    def _payload_types(cls) -> Mapping[str, type]:
        """Event → the type of its payload."""
        return {}

    def __init__(self, **context: Any) -> None:
        if unknown := context.keys() - RESERVED:
            raise TypeError(f"{type(self).__name__}() takes {sorted(RESERVED)}, not {sorted(unknown)}.")
        self._context = context
        self._step_runner: Runner | None = None  # Where nothing runs, steps are plain methods.
        self._parts: dict[str, Any] = {}
        self._make_part: Callable[[Timeline, str], Any] | None = None  # And only an attempt has some parts.
        self._fan_out: Any = None  # And what is fanned out is only checked.

    @overload
    def each(
        self, step: BoundStep[[list[Row]], Taken], rows: QuerySet[Row], /, *, size: int = ...
    ) -> dict[str, Any]: ...
    @overload
    def each(
        self, step: BoundStep[[list[Row]], Coroutine[Any, Any, Taken]], rows: QuerySet[Row], /, *, size: int = ...
    ) -> Coroutine[Any, Any, dict[str, Any]]: ...
    def each(self, step: BoundStep[[list[Row]], Any], rows: QuerySet[Row], /, *, size: int = 100) -> Any:
        """
        Call a step for all rows of a queryset, batch by batch, in the order of their primary keys.

        With each batch it is recorded how far the loop has come: a later attempt goes on there. A batch of an atomic step and
        its record are one transaction. Before a batch of a plain step, its rows are recorded: if it is repeated, it has the
        same rows, also those that the filters would not return any more, and the same ``self.step.idempotency_key``. New rows
        after the present place are included; new rows before it are not.

        Args:
            step: Of this class, called with a list of rows; it returns None, or numbers by name, which are added up.
            rows: Filters, annotations and ``select_related`` are kept; the order is not.
            size: Rows in a batch, 1 to 10,000.

        Returns:
            Name → sum over all batches; for a step declared with ``async def``, a coroutine that returns this.

        Raises:
            InvalidInput: naming ``step``, ``rows`` or ``size``.
        """
        check_step(step, self)
        body = partial(step.step.method, self)
        if self._step_runner is not None:
            return self._step_runner.each(step.step, step.key, rows, size, body)
        take = each_async if step.step.is_async else each
        return take(Batches(rows, size), body, step=step.step.name)

    def progress(self, done: int, total: int | None = None, note: str = "") -> None:
        """
        Show people how far the handler is: written at most once a second, and when ``done`` equals ``total``.

        Only for handlers declared with ``atomic=False``, outside of transactions: else nobody would see it before the end.
        In a unit test, the arguments are checked, and nothing else happens.

        Args:
            done: How many are done; 0 or more.
            total: How many there are; None: nobody knows.
            note: What the handler is doing; 200 characters at most.

        Raises:
            InvalidInput: naming what is wrong, or where it is called.
            LeaseLost: if the attempt does not belong to its worker any more, such as after a cancel. Do not catch it.
        """
        check_progress(done, total, note)
        teller: Teller | None = self._part("teller")
        if teller is not None:
            teller.tell(done, total, str(note))

    async def aprogress(self, done: int, total: int | None = None, note: str = "") -> None:
        """``progress``, for handlers declared with ``async def``."""
        check_progress(done, total, note)
        teller: Teller | None = self._part("teller")
        if teller is not None:
            await teller.atell(done, total, str(note))

    def fan_out(
        self,
        task: Callable[..., Any] | Task[Any, ..., Any],
        occurrences: Mapping[str, dict[str, Any]] | Iterable[str],
        /,
    ) -> None:
        """
        Make a task be done once for each of these, as soon as this one completes.

        Their rows are written with the outcome of this handler: all of them, or none if it does not complete. A later attempt
        decides anew. In a unit test, the arguments are checked, and nothing else happens.

        Args:
            task: Declared with ``each_of(…)`` of the task that this handler belongs to: ``self.settle``.
            occurrences: Name of each (text of 1 to 100 characters) → its payload: plain JSON, 64 KiB at most. Or the names
                alone. 10,000 at most for all calls of a handler together, no name twice for a task.

        Raises:
            InvalidInput: naming what is wrong with them, or where it must not be called: in a call for many, in an ad hoc task,
                in a step. The call has no effect then.
        """
        verb("fan_out")(self, task, occurrences)

    def wait_for(self, *events: str, within: timedelta, key: str = "", name: str = "", of: Any = THEIR_OWN) -> Any:
        """
        Wait for the first of these events of the entity, or of another one; until then the task rests, and needs no worker.

        The attempt ends here. When the event comes, or the time has run out, the handler is entered again from its beginning,
        skips the steps that are done, and gets the answer here. Events since the last step but one was done count; without such
        a step, events since the run began. An event answers one wait of a task. In a unit test, ``awaited`` is the answer.

        Args:
            events: Names, as they are emitted.
            within: How long it waits at most, counted from when it goes to rest.
            key: Of the event; left out: any.
            name: Distinguishes several waits of one handler for the same event; 90 characters at most.
            of: The saved entity, of the same database, whose events count; left out: the task's own. If it is deleted, no
                event can come any more, so the time has run out.

        Returns:
            The event, or None if the time ran out; in a handler declared with ``async def``, a coroutine that returns it.

        Raises:
            InvalidInput: naming what is wrong with what it is given, or where it is called: in an atomic handler, in a step, in
                a transaction, in another thread, twice for the same.
        """
        asked = event_wait(events, within, key, name, of)
        waiter: Waiter | None = self._part("waiter")
        if waiter is not None:
            return waiter.wait(asked)
        if "awaited" not in self._context:
            raise nothing_to_wait(type(self))
        return self._context["awaited"]

    @known_units
    def sleep(
        self,
        delta: timedelta = timedelta(0),
        /,
        *,
        years: int = 0,
        months: int = 0,
        weeks: int = 0,
        days: int = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        until: datetime | None = None,
        name: str = "",
    ) -> Any:
        """
        Sleep for so long, or until a moment; until then the task rests, and needs no worker.

        The attempt ends here. When the moment has come, the handler is entered again from its beginning, skips the steps that
        are done, and goes on behind the sleep. The moment is computed and recorded once. In a unit test, nothing sleeps.

        Args:
            delta: Exact duration; the units are added to it.
            years, months, weeks, days: On the calendar, in the zone of the entity: the same time of day.
            hours, minutes, seconds: Exact.
            until: An aware datetime instead; if it has passed, the handler goes on at once.
            name: Of the sleep, 90 characters at most. Left out: it is the first, the second, … without a name.

        Returns:
            Nothing; in a handler declared with ``async def``, a coroutine to be awaited.

        Raises:
            InvalidInput: naming what is wrong with what it is given (no time, a negative one), or where it is called: in an
                atomic handler, in a step, in a transaction, in another thread, twice for the same name.
        """
        units = {"years": years, "months": months, "weeks": weeks, "days": days}
        times = {"hours": hours, "minutes": minutes, "seconds": seconds}
        return verb("sleep")(self, delta, until=until, name=name, **units, **times)

    def _part(self, name: str) -> Any:
        """What a feature has for the attempt that is made, from its first use on; None: there is none."""
        if name not in self._parts:
            self._parts[name] = None if self._make_part is None else self._make_part(self, name)
        return self._parts[name]

    def _given(self, name: str) -> Any:
        if name not in self._context:
            when = "in a step: a method with @step, which the handler calls" if name == "step" else "while a task runs"
            raise TimelineError(
                f"self.{name} is there {when}. In a unit test give it: {type(self).__name__}({name}=…)."
            )
        return self._context[name]

    @property
    def task(self) -> ScheduledTask:
        """The row, as it was when the attempt started."""
        row: ScheduledTask = self._given("task")
        return row

    @property
    def run(self) -> TimelineRun | None:
        """The run of the task; None for an ad hoc task."""
        run: TimelineRun | None = self._given("run")
        return run

    @property
    def event(self) -> Event | None:
        """The event that caused the row or started its run; None if none did."""
        event: Event | None = self._given("event")
        return event

    @property
    def tasks(self) -> Mapping[Any, Context]:
        """In a handler declared with ``bulk``: entity → its own context."""
        tasks: Mapping[Any, Context] = self._given("tasks")
        return tasks

    @property
    def awaited(self) -> Event | None:
        """The event that this task waited for; None: the time ran out."""
        awaited: Event | None = self._given("awaited")
        return awaited

    @property
    def step(self) -> StepContext:
        """In a method declared with ``@step``: its name, and an idempotency key for services that it calls."""
        under_way: StepContext = step_under_way.get() or self._given("step")
        return under_way

    @property
    def now(self) -> datetime:
        """Story time at which the attempt started."""
        now: datetime = self._given("now")
        return now

    @property
    def lost(self) -> bool:
        """Whether the attempt before this one was lost with its worker."""
        lost: bool = self._given("lost")
        return lost

    @property
    def idempotency_key(self) -> UUID:
        """The same until one attempt completes; see ``Context``."""
        key: UUID = self._given("idempotency_key")
        return key
