"""One watcher a process and database: it reads once a tick for all open pages, and tells those whose subject has changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Final

from django.db import DatabaseError, InterfaceError, connections

from timeline.live.versions import EVERYTHING, is_restless
from timeline.store.database_errors import catching

if TYPE_CHECKING:
    from timeline.live.versions import Subject, Told


logger = logging.getLogger("timeline")

TICK: Final = 0.5  # Seconds from one look to the next, while anybody listens.
LOOK_AGAIN: Final = 15.0  # Seconds after which is asked whether somebody may still listen.
CHANGED: Final = "changed"
OVER: Final = "over"


@dataclass(eq=False)
class PageListener:
    """
    An open page, and the mark ``told`` when it began to listen. ``tell`` gets ``changed`` or ``over`` in the watcher's thread.

    It must return at once. ``may_stay`` asks the database whether session and rights are still the same.
    """

    subject: Subject
    told: Told
    tell: Callable[[str], None]
    may_stay: Callable[[], bool]
    asked_at: float = field(default_factory=monotonic)


class Watcher:
    """Looks at a database while anybody listens, in a thread that ends with the last of them. A look is one statement."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._lock = threading.Lock()
        self._listeners: set[PageListener] = set()
        self._thread: threading.Thread | None = None
        self._seen: Told | None = None

    def add(self, listener: PageListener, *, most: int) -> bool:
        """Listen from now on; false: there are as many listeners as there may be."""
        with self._lock:
            if len(self._listeners) >= most:
                return False
            self._listeners.add(listener)
            if self._thread is None:
                self._seen = None
                self._thread = threading.Thread(target=self._watch, name=f"timeline-live-{self._using}", daemon=True)
                self._thread.start()
        return True

    def is_full(self, most: int) -> bool:
        return len(self._listeners) >= most

    def remove(self, listener: PageListener) -> None:
        with self._lock:
            self._listeners.discard(listener)

    def look(self) -> None:
        """Tell those whose subject has changed since the last look, and those who may listen no more."""
        seen = EVERYTHING.mark(self._using)
        has_changed = seen != self._seen
        marks: dict[Subject, Told] = {EVERYTHING: seen}
        for listener in self._copy():
            subject = listener.subject
            if subject not in marks and (has_changed or is_restless(subject, listener.told)):
                marks[subject] = subject.mark(self._using)
            if (told := marks.get(subject, listener.told)) != listener.told:
                listener.told = told
                self._tell(listener, CHANGED)
        self._seen = seen

    def _ask_again(self) -> None:
        for listener in self._copy():
            if monotonic() - listener.asked_at >= LOOK_AGAIN:
                listener.asked_at = monotonic()
                if not _may_stay(listener):
                    self._tell(listener, OVER)

    def _tell(self, listener: PageListener, what: str) -> None:
        try:
            listener.tell(what)
        except RuntimeError:  # Its event loop is closed.
            self.remove(listener)

    def _watch(self) -> None:
        pause = threading.Event()
        try:
            while self._is_needed():
                self.look()
                self._ask_again()
                pause.wait(TICK)
        except (DatabaseError, InterfaceError) as error:
            logger.debug("Open pages are told no more; they ask, and come back. %s", error)
        finally:
            self._give_up()
            connections.close_all()  # Those of this thread.

    def _give_up(self) -> None:
        """Whoever still listens asks from now on, as nobody would look for them."""
        with self._lock:
            if self._thread is not threading.current_thread():
                return
            left, self._listeners, self._thread = self._listeners, set(), None
        for listener in left:
            self._tell(listener, OVER)

    def _is_needed(self) -> bool:
        with self._lock:
            if not self._listeners:
                self._thread = None
            return bool(self._listeners)

    def _copy(self) -> list[PageListener]:
        with self._lock:
            return list(self._listeners)


def _may_stay(listener: PageListener) -> bool:
    """Ask. What the host's code raises ends this page only, which then asks for itself."""
    caught: list[Exception] = []
    with catching(caught):
        return listener.may_stay()
    if isinstance(caught[0], DatabaseError | InterfaceError):
        raise caught[0]
    logger.error("Whether an open page may be told of changes cannot be found out.", exc_info=caught[0])
    return False


_watchers: dict[str, Watcher] = {}
_making: Final = threading.Lock()


def watcher_of(using: str) -> Watcher:
    with _making:
        return _watchers.setdefault(using, Watcher(using))
