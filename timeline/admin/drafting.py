"""
What somebody was about to do when they had to log in again.

The form comes by POST, and who has logged in comes back by GET: what was typed waits in the session meanwhile, which the
login keeps. Of each session one is kept, the latest; it is for nobody but whom the form was made for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.http import QueryDict

from timeline.admin.acting import MAX_CHOSEN

if TYPE_CHECKING:
    from django.http import HttpRequest

_KEY: Final = "timeline_draft"
_FIELDS: Final = ("who", "action", "where", "alone", "step", "result", "reason", "at")
_LONGEST: Final = 1000  # Characters of each that are kept.
_LONGEST_ID: Final = 36  # Of a task: who has not logged in can write no more than this into the store of sessions.


def keep(request: HttpRequest) -> None:
    """Keep what a form says."""
    said = {name: [request.POST[name][:_LONGEST]] for name in _FIELDS if name in request.POST}
    request.session[_KEY] = said | {"task": [text[:_LONGEST_ID] for text in request.POST.getlist("task")[:MAX_CHOSEN]]}


def kept(request: HttpRequest) -> QueryDict | None:
    """What was kept; None: nothing, or somebody else wrote it."""
    said = request.session.get(_KEY)
    if said is None:
        return None
    if said.get("who", [str(request.user.pk)]) != [str(request.user.pk)]:
        forget(request)
        return None
    given = QueryDict(mutable=True)
    for name, texts in said.items():
        given.setlist(name, texts)
    return given


def forget(request: HttpRequest) -> None:
    """Keep nothing any more: it is done, or something else is asked for."""
    request.session.pop(_KEY, None)
