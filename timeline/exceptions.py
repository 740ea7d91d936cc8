"""
What can go wrong, as leaves of ``TimelineError``: what happened is in the attributes, the remedy in the text.

``str()`` tells it in the language of whoever reads it. Only what developers and logs meet is always in English.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from django.utils import translation
from django.utils.formats import number_format
from django.utils.functional import lazy
from django.utils.translation import gettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from timeline.lifecycle import Reason

_number = lazy(number_format, str)
_ASKED_FOR = (
    pgettext_lazy("timeline", "move"),
    pgettext_lazy("timeline", "redrive"),
    pgettext_lazy("timeline", "decide"),
)  # For the catalogue: no triggers.


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


class TimelineDeprecationWarning(DeprecationWarning):
    """What is used here will be taken away; the text says what to use instead, and the changelog since when."""


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
    """
    A value given to an operation cannot be taken; nothing was written. ``field`` names it.

    Args:
        field: Name of the argument.
        problem, remedy: Sentences, perhaps lazily translated.
        values: What their placeholders stand for; without any, they are taken as they are.
    """

    def __init__(self, field: str, problem: StrOrPromise, remedy: StrOrPromise, **values: object) -> None:
        self.field = field
        self.values = values
        self._problem = problem
        self._remedy = remedy

    def __str__(self) -> str:
        return f"{self.field}: {self.problem} {self.remedy}"

    @property
    def problem(self) -> str:
        """What is wrong, in the present language."""
        return str(self._problem) % self.values if self.values else str(self._problem)

    @property
    def remedy(self) -> str:
        """What can be done about it, in the present language."""
        return str(self._remedy) % self.values if self.values else str(self._remedy)


class NaiveDatetime(InvalidInput):
    """A datetime without a zone. Give an aware one, for example ``timezone.make_aware(value)``."""

    def __init__(self, field: str) -> None:
        super().__init__(field, _("has no time zone."), _("Give an aware datetime, e.g. timezone.make_aware(value)."))


class DateOutOfRange(InvalidInput):
    """A date outside 1970–9000. Check the offset, or the field it was computed from."""

    def __init__(self, field: str, value: object) -> None:
        self.value = value
        problem = _("%(value)s is outside the years 1970 to 9000.")
        super().__init__(field, problem, _("Give a date within them."), value=value)


class NotPlainJSON(InvalidInput):
    """A value that plain JSON cannot hold. Convert it first (dates to text, objects to their ids)."""

    def __init__(self, field: str, problem: StrOrPromise, **values: object) -> None:
        remedy = _("Use only dict (text keys), list, str, int, finite float, bool and None.")
        super().__init__(field, problem, remedy, **values)


class PayloadTooLarge(InvalidInput):
    """More JSON than a row may hold. Store it in a table of your own and keep its id here."""

    def __init__(self, field: str, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        said = {"size": _number(size, force_grouping=True), "limit": _number(limit, force_grouping=True)}
        problem = _("is %(size)s bytes of JSON, over %(limit)s.")
        super().__init__(field, problem, _("Store it elsewhere and keep its id."), **said)


class UnknownTimeline(InvalidInput):
    """No timeline of this name is registered. Declare it in a ``timelines`` module of an installed app."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name = name
        said = {"name": name, "known": ", ".join(known) or pgettext_lazy("timeline", "none")}
        super().__init__("timeline", _("%(name)r is not registered."), _("Known: %(known)s."), **said)


class UnknownTask(InvalidInput):
    """No handler is registered under this task key. Use ``<timeline>.<method>`` of a declared task."""

    def __init__(self, task_key: str, known: list[str]) -> None:
        self.task_key = task_key
        said = {"name": task_key, "known": ", ".join(known) or pgettext_lazy("timeline", "none")}
        super().__init__("task_key", _("%(name)r is not registered."), _("Known: %(known)s."), **said)


class UnknownEvent(InvalidInput):
    """
    No timeline about such entities starts or ends with this event. Correct its name, or name it in
    ``TIMELINE["RECORDED_EVENTS"]`` if it is meant to be recorded and nothing else.

    Args:
        name: Of the event.
        label: Of the entity; empty: the system's.
        near: Names of known events that look like it.
        elsewhere: Labels of other entities for which it is known.
    """

    def __init__(self, name: str, label: str, near: list[str], elsewhere: list[str]) -> None:
        self.name = name
        self.label = label
        self.near = near
        self.elsewhere = elsewhere
        problem = _("No timeline about %(label)s starts or ends with the event %(name)r.")
        super().__init__("name", problem, "", name=name, label=label or _("the system"))

    @property
    def remedy(self) -> str:
        """Which names are meant, perhaps, and what can be done."""
        said = []
        if self.near:
            said.append(gettext("Did you mean %(names)s?") % {"names": ", ".join(map(repr, self.near))})
        if elsewhere := [label or gettext("the system") for label in self.elsewhere]:
            said.append(gettext("It is known for %(labels)s.") % {"labels": ", ".join(elsewhere)})
        said.append(gettext("If it is meant to be recorded only, name it in TIMELINE['RECORDED_EVENTS']."))
        return " ".join(said)


class WrongEntity(InvalidInput):
    """The entity does not fit: another model than declared, none at all, or not in the database."""

    def __init__(self, problem: StrOrPromise, remedy: StrOrPromise, **values: object) -> None:
        super().__init__("entity", problem, remedy, **values)


class UnreadableEntity(InvalidInput):
    """
    The entity is there, but its model cannot make sense of what the row holds; what it met is the ``__cause__``.

    Mend the row, or the model: a member of an enum that was removed, say, a lost key, a property that raises.
    """

    def __init__(self, entity: object, cause: str) -> None:
        said = {"entity": entity, "cause": cause}
        super().__init__("entity", _("%(entity)s cannot be read (%(cause)s)."), _("Mend it, or its model."), **said)

    @classmethod
    def because(cls, entity: object, error: BaseException) -> UnreadableEntity:
        """Say what was met."""
        made = cls(entity, "".join(traceback.format_exception_only(error)).strip())
        made.__cause__ = error
        return made


class KeyConflict(InvalidInput):
    """This key was used before for something else. Use another key for another event or task."""

    def __init__(self, name: StrOrPromise, key: str, differs: StrOrPromise) -> None:
        self.name = name
        self.key = key
        problem = _("%(key)r was used for %(name)s before, with another %(differs)s.")
        super().__init__("key", problem, _("Use another key."), name=name, key=key, differs=differs)


class KeyReused(InvalidInput):
    """This ``Idempotency-Key`` came before with another request. Send a new key with each request, the same to repeat one."""

    def __init__(self) -> None:
        problem = _("came before with another request: another method, address or body.")
        super().__init__("Idempotency-Key", problem, _("Send a new key, or the same request again."))


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
    """
    Rows of an old and of a new label would be the same row. End, or delete, those of one label first.

    Args:
        old, new: The labels.
        what: Which rows, in words.
        ids: Keys of entities concerned, a few of them.
    """

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


class TransitionNotAllowed(Refusal):
    """The lifecycle has no such move from this state; nothing was written. See ``remedy``."""

    message = _("state: %(which)s is %(state)s, which allows no '%(trigger)s'. %(remedy)s")

    def __init__(self, state: str, trigger: str, remedy: StrOrPromise, task: object = "") -> None:
        self.state = state
        self.trigger = trigger
        self.task = task
        super().__init__(remedy)

    def _values(self) -> Mapping[str, object]:
        which = gettext("task %(task)s") % vars(self) if self.task else gettext("a task")
        # A state is called in English what it is called in code, and so is a trigger.
        return {
            **super()._values(),
            "which": which,
            "state": pgettext("timeline", self.state),
            "trigger": pgettext("timeline", self.trigger),
        }


class NoOpenRun(TimelineError):
    """The entity has no open run of this timeline. Start one first, or check the key."""

    message = _("timeline: %(entity)s has no open run of %(timeline)r (key %(key)r). Start one first.")

    def __init__(self, timeline: str, entity: str, key: str) -> None:
        self.timeline = timeline
        self.entity = entity
        self.key = key


class RunEnded(Refusal):
    """
    An exit ended the run of this task, or came after it, so the task is no longer true. Start a new run instead.

    Args:
        task: Its id.
        end_reason: Name of the exit, or what somebody wrote who ended the run; in no text, since not everybody may read that.
    """

    message = _("run: the run of task %(task)s has ended. %(remedy)s")

    def __init__(self, task: object, end_reason: str) -> None:
        self.task = task
        self.end_reason = end_reason
        super().__init__(_("Start a new run instead."))


class AlreadyOpen(Refusal):
    """Another revision of this task is open already. Move, run or cancel that one."""

    message = _("task: %(task)s is open already. %(remedy)s")

    def __init__(self, task: object) -> None:
        self.task = task
        super().__init__(_("Move, run or cancel it instead of making another."))


class ChangedSince(Refusal):
    """
    The task has changed since it was looked at; nothing was written. Look at it again, and decide anew.

    Args:
        task: Its id.
        state, scheduled_at: What it is by now.
        seq: What to give as seen, once it was looked at again.
        remedy: Other than to look again.
        actor, reason: Who changed it last, and why; in no text, since not everybody may read them. Empty: the system.
    """

    message = _("task: %(task)s has changed since you looked: it is %(state)s by now, due %(due)s. %(remedy)s")

    def __init__(
        self,
        task: object,
        state: str,
        scheduled_at: datetime,
        *,
        seq: int = 0,
        actor: str = "",
        reason: str = "",
        remedy: StrOrPromise = "",
    ) -> None:
        self.task = task
        self.state = state
        self.scheduled_at = scheduled_at
        self.seq = seq
        self.actor = actor
        self.reason = reason
        super().__init__(remedy or _("Look at it again, and decide anew."))

    def _values(self) -> Mapping[str, object]:
        due = f"{self.scheduled_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        return {**super()._values(), "state": pgettext("timeline", self.state), "due": due}


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


class Rest(BaseException):
    """
    Raised by a step where the task has to wait for somebody's decision. The attempt ends, and that is no failure.

    It is no ``Exception``, so that a handler which catches errors does not catch it by mistake. If one does, the next
    step raises it again, and so does the end of the handler.
    """

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
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
