"""What all errors share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from django.utils import translation

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


MOST_SAID: Final = 2_000  # Characters of a value that an error repeats,
MOST_NAMED: Final = 200  # and of a name.


def clipped(value: object, most: int = MOST_NAMED) -> object:
    """What an error repeats of a value: of a long text only the beginning. Anything but text is given as it is."""
    return f"{value[:most]}…" if isinstance(value, str) and len(value) > most else value


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
