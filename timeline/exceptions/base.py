"""What all errors share."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.utils import translation
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from timeline.lifecycle import Reason


MOST_SAID: Final = 2_000  # Characters of a value that an error repeats,
MOST_NAMED: Final = 200  # and of a name.
_OURS: Final = __name__.partition(".")[0]


def clipped(value: object, most: int = MOST_NAMED) -> object:
    """What an error repeats of a value: of a long text only the beginning. Anything but text is given as it is."""
    return f"{value[:most]}…" if isinstance(value, str) and len(value) > most else value


def _file_outside() -> str | None:
    """The file of the innermost code that is being run and is not ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == _OURS:
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else None


class TimelineError(Exception):
    """Base of every error this package raises."""

    message: ClassVar[StrOrPromise] = ""  # Filled with the attributes; empty where an error is given its text.

    def __str__(self) -> str:
        return str(self.message) % self._values() if self.message else super().__str__()

    def in_english(self) -> str:
        """Tell it in English whatever the present language: for logs, and for what rows keep."""
        with translation.override("en"):
            return str(self)

    def _values(self) -> Mapping[str, object]:
        return vars(self)


class UnknownEventWarning(UserWarning):
    """A test emits an event that no timeline knows. Correct its name, or name it in ``TIMELINE["RECORDED_EVENTS"]``."""


class TimelineDeprecationWarning(DeprecationWarning):
    """What is used here will be taken away; the text says what to use instead, and the changelog since when."""


class DefinitionError(TimelineError):
    """A timeline is declared wrongly. Correct the class it names; the site does not start until then."""

    def __init__(self, timeline: str, problem: str, remedy: str, method: str = "") -> None:
        self.timeline = timeline
        self.method = method
        self.problem = problem
        self.remedy = remedy
        # As a SyntaxError has it: Django's reloader watches this file, and so sees that it was corrected.
        self.filename = _file_outside()
        where = f"{timeline}.{method}" if method else timeline
        super().__init__(f"{where}: {problem} {remedy}")


class Refusal(TimelineError):
    """Base of what cannot be done as things are; nothing was written. ``remedy`` says what can."""

    def __init__(self, remedy: StrOrPromise) -> None:
        self._remedy = remedy

    @property
    def remedy(self) -> str:
        """What can be done, in the present language."""
        return str(self._remedy)

    def _values(self) -> Mapping[str, object]:
        return {**vars(self), "remedy": self.remedy}


class LeaseLost(TimelineError):
    """The attempt is no longer its worker's: cancelled, or given up for dead. What it wrote is rolled back."""

    message = "attempt %(attempt)s of task %(task)s is not ours any more; its outcome was not recorded."

    def __init__(self, task: object, attempt: int) -> None:
        self.task = task
        self.attempt = attempt


class TimedOut(LeaseLost):
    """Its handler has taken longer than its ``timeout``: the attempt has failed. What it wrote is rolled back."""

    message = "attempt %(attempt)s of task %(task)s took longer than %(timeout)s; what its handler comes back with is dropped."

    def __init__(self, task: object, attempt: int, timeout: timedelta) -> None:
        super().__init__(task, attempt)
        self.timeout = timeout


class WorkerLost(LeaseLost):
    """
    The last worker that a task may lose is gone with it. Nobody raises it: ``errors`` of a machine may name it, to say which
    event that means.
    """

    message = "attempt %(attempt)s of task %(task)s was lost with its worker, and is the last."


class Rest(BaseException):
    """
    Raised by a step where the task has to wait for somebody's decision. The attempt ends, and that is no failure.

    It is no ``Exception``, so that a handler which catches errors does not catch it by mistake. If one does, the next
    step raises it again, and so does the end of the handler. ``due_at``: when the task looks again; None: soon.
    """

    def __init__(self, reason: Reason, *, due_at: datetime | None = None, rests: Any = None) -> None:
        self.reason = reason
        self.due_at = due_at
        self.rests = rests
        super().__init__(reason.text)


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
    """Raised by a handler: try again after a delay, ten years at most (else ``ValueError``). Counts against the budget."""

    def __init__(self, delay: timedelta, reason: str = "") -> None:
        if not isinstance(delay, timedelta) or not timedelta(0) <= delay <= timedelta(days=3653):
            raise ValueError(f"RetryAfter({delay!r}): give a timedelta from 0 to ten years.")
        self.delay = delay
        self.reason = str(reason) or f"asked to be retried in {delay}"
        super().__init__(self.reason)


class RateLimited(RetryAfter):  # of rates
    """
    Raised by a handler: an API has had too much. All tasks that share its ``rate`` wait, and so does this one. That is no
    failure the first hundred times. Of a task without a rate, it is a ``RetryAfter``.

    ``retry_after`` is a timedelta, or seconds: as much as the API asks for, from 0 to 31 days (else ``ValueError``).
    """

    def __init__(self, retry_after: timedelta | float, reason: str = "") -> None:
        try:
            delay = retry_after if isinstance(retry_after, timedelta) else timedelta(seconds=float(retry_after))
        except (TypeError, ValueError, OverflowError):
            delay = timedelta(-1)
        if not timedelta(0) <= delay <= timedelta(days=31):
            raise ValueError(f"RateLimited({retry_after!a:.60}): give a timedelta or seconds, from 0 to 31 days.")
        super().__init__(delay, reason)


class WrongIsolation(TimelineError):
    """
    Called in a transaction that does not see what others have committed since it began; nothing was written.

    Call it outside of that transaction, where it has one of its own, or let the transaction be READ COMMITTED.
    """

    message = _(
        "The transaction on the database %(using)r is %(level)s: it does not see what others have committed since it began, so "
        "that an exit might end nothing. Call this outside of a transaction, or make it READ COMMITTED, PostgreSQL's default: "
        "see isolation_level in OPTIONS, and default_transaction_isolation of the server, the database and the role."
    )

    def __init__(self, level: str, using: str) -> None:
        self.level = level.upper()
        self.using = using


class LabelsCollide(TimelineError):
    """Rows of an old and of a new label would be the same row. End, or delete, those of one label first."""

    message = _(
        "new: %(old)s and %(new)s both have the same %(what)s of %(ids)s. End or delete those of one label first."
    )

    def __init__(self, old: str, new: str, what: StrOrPromise, ids: list[str]) -> None:
        self.old = old
        self.new = new
        self.what = what
        self.ids = ids

    def _values(self) -> Mapping[str, object]:
        return {**vars(self), "ids": ", ".join(self.ids)}


class BrokerUnavailable(TimelineError):
    """The message broker took no message. What was to be sent is sent by a later poll; see that the broker runs."""

    message = "The broker takes no message (%(kind)s: %(cause)s). A later poll sends it."

    def __init__(self, cause: BaseException) -> None:
        self.cause = cause
        self.kind = type(cause).__name__


class NotRunHere(TimelineError):
    """Nothing of this database is run by this process, for a reason that says what to do."""


class NoAutocommit(NotRunHere):
    """The connection commits nothing by itself. What a worker wrote would be lost, after its handlers were entered."""

    message = _(
        "The database %(using)r has autocommit off, so that outcomes would be lost: nothing of it runs here. Take AUTOCOMMIT "
        "out of DATABASES[%(using)r]; a handler that calls transaction.set_autocommit(False) must put it back."
    )

    def __init__(self, using: str) -> None:
        self.using = using


class WrongSite(NotRunHere):
    """The database is another site's: perhaps a copy. Run ``manage.py timeline_adopt``, which can clear what is open."""

    message = _(
        "The database %(using)r is %(whose)s, and %(setting)s: nothing of it runs here. If it is a copy, clear it with "
        "manage.py timeline_adopt --clear --database %(using)s; if it is yours, adopt it with --keep, or correct the "
        "setting."
    )

    def __init__(self, ours: str, theirs: str, using: str) -> None:
        self.ours = ours
        self.theirs = theirs
        self.using = using

    def _values(self) -> Mapping[str, object]:
        whose = gettext("that of the site %(theirs)r") if self.theirs else gettext("of no named site")
        setting = gettext("TIMELINE['SITE'] is %(ours)r") if self.ours else gettext("TIMELINE['SITE'] is not set")
        return {**vars(self), "whose": whose % vars(self), "setting": setting % vars(self)}
