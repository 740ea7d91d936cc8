"""A value that cannot be taken: ``InvalidInput`` and its leaves. Nothing was written."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Self

from django.utils.formats import number_format
from django.utils.functional import lazy
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from timeline.exceptions.base import MOST_SAID, TimelineError, clipped
from timeline.suggestions import with_meant

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


_number = lazy(number_format, str)


class InvalidInput(TimelineError):
    """
    A value given to an operation cannot be taken; nothing was written. ``field`` names it.

    ``problem`` and ``remedy`` may be translated lazily; ``values`` are what their placeholders stand for, if they have any.
    """

    def __init__(self, field: str, problem: StrOrPromise, remedy: StrOrPromise, **values: object) -> None:
        self.field = field
        self.values = {placeholder: clipped(value, MOST_SAID) for placeholder, value in values.items()}
        self.entity: object = None
        self._problem = problem
        self._remedy = remedy

    def __str__(self) -> str:
        return f"{self.field}: {self.problem} {self.remedy}"

    def of(self, entity: object) -> Self:
        """Say whose value it is, where many are handled at once: ``entity`` is its name."""
        self.entity = entity
        return self

    @property
    def problem(self) -> str:
        """What is wrong, in the present language."""
        return str(self._problem) % self.values if self.values else str(self._problem)

    @property
    def remedy(self) -> str:
        """What can be done about it, in the present language."""
        return str(self._remedy) % self.values if self.values else str(self._remedy)


class NaiveDatetime(InvalidInput):
    """A datetime without a zone, or no datetime at all. Give an aware one, for example ``timezone.make_aware(value)``."""

    def __init__(self, field: str, *, is_datetime: bool = True) -> None:
        self.is_datetime = is_datetime
        if is_datetime:
            given = _("has no time zone."), _("Give an aware datetime, e.g. timezone.make_aware(value).")
        else:
            given = _("is no datetime."), _("Give an aware one, e.g. timezone.now() + timedelta(days=2).")
        super().__init__(field, *given)


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


class UnknownName(InvalidInput):
    """Nothing of this name is registered. Base of ``UnknownTimeline`` and ``UnknownTask``."""

    def __init__(self, field: str, name: str, known: list[str]) -> None:
        said = {"name": clipped(name), "known": ", ".join(known) or pgettext_lazy("timeline", "none")}
        remedy = with_meant(_("Known: %(known)s."), name, known)
        super().__init__(field, _("%(name)r is not registered."), remedy, **said)


class UnknownTimeline(UnknownName):
    """No timeline of this name is registered. Declare it in a ``timelines`` module of an installed app."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name = name
        super().__init__("timeline", name, known)


class UnknownTask(UnknownName):
    """No handler is registered under this task key. Use ``<timeline>.<method>`` of a declared task."""

    def __init__(self, task_key: str, known: list[str]) -> None:
        self.task_key = task_key
        super().__init__("task_key", task_key, known)


class UnknownEvent(InvalidInput):
    """
    No timeline about such entities knows this event: none starts, moves or ends with it, or waits for it. Correct its name, or
    name it in ``TIMELINE["RECORDED_EVENTS"]`` if it is meant to be recorded and nothing else.

    ``near`` are known events that look like it, ``elsewhere`` labels of other entities for which it is known.
    """

    def __init__(self, name: str, label: str, near: list[str], elsewhere: list[str]) -> None:
        self.name = name
        self.label = label
        self.near = near
        self.elsewhere = elsewhere
        problem = _("No timeline about %(label)s knows the event %(name)r.")
        super().__init__("name", problem, "", name=clipped(name), label=clipped(label) or _("the system"))

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
