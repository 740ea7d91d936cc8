"""Where this runs does not do: the database, its transaction, the broker, the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from timeline.exceptions.base import TimelineError

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


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
