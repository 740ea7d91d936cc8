"""What can go wrong, as leaves of ``TimelineError``: what happened is in the attributes, the remedy in the text."""

from __future__ import annotations

from datetime import timedelta


class TimelineError(Exception):
    """Base of every error this package raises."""


class DefinitionError(TimelineError):
    """A timeline is declared wrongly. Correct the class it names; the site does not start until then."""

    def __init__(self, timeline: str, problem: str, remedy: str, method: str = "") -> None:
        self.timeline = timeline
        self.method = method
        self.problem = problem
        self.remedy = remedy
        where = f"{timeline}.{method}" if method else timeline
        super().__init__(f"{where}: {problem} {remedy}")


class InvalidInput(TimelineError):
    """A value given to an operation cannot be taken; nothing was written. ``field`` names it."""

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        self.field = field
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{field}: {problem} {remedy}")


class NaiveDatetime(InvalidInput):
    """A datetime without a zone. Give an aware one, for example ``timezone.make_aware(value)``."""

    def __init__(self, field: str) -> None:
        super().__init__(field, "has no time zone.", "Give an aware datetime, e.g. timezone.make_aware(value).")


class DateOutOfRange(InvalidInput):
    """A date outside 1970–9000. Check the offset, or the field it was computed from."""

    def __init__(self, field: str, value: object) -> None:
        self.value = value
        super().__init__(field, f"{value} is outside the years 1970 to 9000.", "Give a date within them.")


class NotPlainJSON(InvalidInput):
    """A value that plain JSON cannot hold. Convert it first (dates to text, objects to their ids)."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem, "Use only dict (text keys), list, str, int, finite float, bool and None.")


class PayloadTooLarge(InvalidInput):
    """More JSON than a row may hold. Store it in a table of your own and keep its id here."""

    def __init__(self, field: str, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(field, f"is {size:,} bytes of JSON, over {limit:,}.", "Store it elsewhere and keep its id.")


class UnknownTimeline(InvalidInput):
    """No timeline of this name is registered. Declare it in a ``timelines`` module of an installed app."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name = name
        super().__init__("timeline", f"{name!r} is not registered.", f"Known: {', '.join(known) or 'none'}.")


class UnknownTask(InvalidInput):
    """No handler is registered under this task key. Use ``<timeline>.<method>`` of a declared task."""

    def __init__(self, task_key: str, known: list[str]) -> None:
        self.task_key = task_key
        super().__init__("task_key", f"{task_key!r} is not registered.", f"Known: {', '.join(known) or 'none'}.")


class WrongEntity(InvalidInput):
    """The entity does not fit: another model than declared, none at all, or not in the database."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__("entity", problem, remedy)


class KeyConflict(InvalidInput):
    """This key was used before for something else. Use another key for another event or task."""

    def __init__(self, name: str, key: str, differs: str) -> None:
        self.name = name
        self.key = key
        super().__init__("key", f"{key!r} was used for {name} before, with another {differs}.", "Use another key.")


class LabelsCollide(TimelineError):
    """
    Rows of an old and of a new label would be the same row. End, or delete, those of one label first.

    Args:
        old, new: The labels.
        what: Which rows, in words.
        ids: Keys of entities concerned, a few of them.
    """

    def __init__(self, old: str, new: str, what: str, ids: list[str]) -> None:
        self.old = old
        self.new = new
        self.what = what
        self.ids = ids
        super().__init__(
            f"new: {old} and {new} both have the same {what} of {', '.join(ids)}. End or delete those of one label first."
        )


class TransitionNotAllowed(TimelineError):
    """The lifecycle has no such move from this state; nothing was written. See ``remedy``."""

    def __init__(self, state: str, trigger: str, remedy: str, task: object = "") -> None:
        self.state = state
        self.trigger = trigger
        self.task = task
        self.remedy = remedy
        which = f"task {task}" if task else "a task"
        super().__init__(f"state: {which} is {state}, which allows no {trigger!r}. {remedy}")


class NoOpenRun(TimelineError):
    """The entity has no open run of this timeline. Start one first, or check the key."""

    def __init__(self, timeline: str, entity: str, key: str) -> None:
        self.timeline = timeline
        self.entity = entity
        super().__init__(f"timeline: {entity} has no open run of {timeline!r} (key {key!r}). Start one first.")


class RunEnded(TimelineError):
    """The run of this task ended by an exit, so the task is no longer true. Start a new run instead."""

    def __init__(self, task: object, end_reason: str) -> None:
        self.task = task
        self.end_reason = end_reason
        self.remedy = "Start a new run instead."
        super().__init__(f"run: the run of task {task} ended ({end_reason}). {self.remedy}")


class AlreadyOpen(TimelineError):
    """Another revision of this task is open already. Move, run or cancel that one."""

    def __init__(self, task: object) -> None:
        self.task = task
        self.remedy = "Move, run or cancel it instead of making another."
        super().__init__(f"task: {task} is open already. {self.remedy}")


class LeaseLost(TimelineError):
    """The attempt is no longer its worker's: cancelled, or given up for dead. What it wrote is rolled back."""

    def __init__(self, task: object, attempt: int) -> None:
        self.task = task
        self.attempt = attempt
        super().__init__(f"attempt {attempt} of task {task} is not ours any more; its outcome was not recorded.")


class BrokerUnavailable(TimelineError):
    """The message broker took no message. What was to be sent is sent by a later poll; see that the broker runs."""

    def __init__(self, cause: BaseException) -> None:
        self.cause = cause
        super().__init__(f"The broker takes no message ({type(cause).__name__}: {cause}). A later poll sends it.")


class WrongSite(TimelineError):
    """The database is another site's: perhaps a copy. Run ``manage.py timeline_adopt``, which can clear what is open."""

    def __init__(self, ours: str, theirs: str, using: str) -> None:
        self.ours = ours
        self.theirs = theirs
        self.using = using
        whose = f"that of the site {theirs!r}" if theirs else "of no named site"
        setting = f"TIMELINE['SITE'] is {ours!r}" if ours else "TIMELINE['SITE'] is not set"
        super().__init__(
            f"The database {using!r} is {whose}, and {setting}: nothing of it runs here. If it is a copy, clear it with "
            f"manage.py timeline_adopt --clear --database {using}; if it is yours, adopt it with --keep, or correct the "
            "setting."
        )


class HandlerSignal(TimelineError):
    """What a handler raises to choose its ending. Let it pass: do not catch it in the handler."""


class Cancel(HandlerSignal):
    """Raised by a handler: what it was to do is no longer wanted. The task ends cancelled, with this text."""

    def __init__(self, reason: str) -> None:
        self.reason = str(reason)
        super().__init__(self.reason)


class Discard(HandlerSignal):
    """Raised by a handler: the error is permanent. The task ends discarded, with this text, without a retry."""

    def __init__(self, reason: str) -> None:
        self.reason = str(reason)
        super().__init__(self.reason)


class RetryAfter(HandlerSignal):
    """
    Raised by a handler: try again after a delay. Counts against the retry budget.

    Args:
        delay: From now; not negative, ten years at most.
        reason: Kept in the log.

    Raises:
        ValueError: if ``delay`` is something else.
    """

    def __init__(self, delay: timedelta, reason: str = "") -> None:
        if not isinstance(delay, timedelta) or not timedelta(0) <= delay <= timedelta(days=3653):
            raise ValueError(f"RetryAfter({delay!r}): give a timedelta from 0 to ten years.")
        self.delay = delay
        self.reason = str(reason) or f"asked to be retried in {delay}"
        super().__init__(self.reason)
