"""Who may do what. The host's policy decides; it is asked for nothing only where ``ANYBODY`` says so."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.http import HttpRequest
from django.utils.module_loading import import_string

from timeline.ojs.conf import get_settings
from timeline.ojs.errors import Forbidden, NotAuthenticated
from timeline.ojs.jobs import all_jobs
from timeline.policy import TimelinePolicy, get_policy
from timeline.store.callers import NamesNobody, looking_up, who_asks

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


class Right(StrEnum):
    """What somebody may do; the permission is called after it, ``timeline_ojs.enqueue_jobs``."""

    ENQUEUE = "enqueue_jobs"
    WORK = "work_jobs"
    MANAGE = "manage_jobs"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. ``user``: None where anybody may do everything."""

    user: Any = None
    policy: TimelinePolicy | None = None

    @property
    def actor(self) -> str:
        """How the log names them."""
        return "" if self.user is None else str(self.user.get_username())[:150]

    def rows(self, *, using: str) -> ScheduledTaskQuerySet:
        """The jobs that they may know of: all, unless the host's policy has a ``visible_jobs``."""
        narrowed = self.narrowed(using=using)
        return all_jobs(using=using) if narrowed is None else narrowed

    def narrowed(self, *, using: str) -> ScheduledTaskQuerySet | None:
        """The same; None: all."""
        narrow = getattr(self.policy, "visible_jobs", None)
        return None if narrow is None else narrow(all_jobs(using=using), self.user)

    def check_queues(self, names: Collection[str]) -> None:
        """Refuse jobs for queues that they may put none into, where the host's policy has an ``allows_queue``."""
        ask = getattr(self.policy, "allows_queue", None)
        refused = [] if ask is None else [name for name in sorted(names) if not ask(self.user, name)]
        if refused:
            raise Forbidden(f"Jobs for the queue {refused[0]} are not taken from you.", queue=refused[0])


def caller_of(request: HttpRequest, *rights: Right) -> Caller:
    """
    Find out who asks, and whether they have one of these rights.

    A policy of the host's may answer by ``allows_jobs(user, right)``; else the permissions of the user do.

    Raises:
        NotAuthenticated: if nobody knows who asks.
        Forbidden: if they have none of the rights.
    """
    if get_settings().ANYBODY:
        return Caller()
    user, policy = _user_of(request), get_policy()
    if user is None or not getattr(user, "is_active", False):
        raise NotAuthenticated("Nobody knows who asks.")
    ask = getattr(policy, "allows_jobs", None)
    for right in rights:
        if ask(user, right) if ask is not None else user.has_perm(f"timeline_ojs.{right}"):
            return Caller(user, policy)
    raise Forbidden(f"Needs the permission {' or '.join(f'timeline_ojs.{right}' for right in rights)}.")


def _user_of(request: HttpRequest) -> Any:
    path = get_settings().AUTHENTICATE
    try:
        with looking_up():
            if path is not None:
                return import_string(path)(request)
            return _by_framework(request) if apps.is_installed("rest_framework") else who_asks(request)
    except NamesNobody:
        return None


def _by_framework(request: HttpRequest) -> Any:
    """Ask the classes of Django REST framework that the site has for its API."""
    from rest_framework.exceptions import APIException
    from rest_framework.request import Request
    from rest_framework.settings import api_settings

    classes: list[Any] = api_settings.DEFAULT_AUTHENTICATION_CLASSES  # type: ignore[assignment]
    authenticators = [ask() for ask in classes]
    try:
        return Request(request, authenticators=authenticators).user
    except APIException:
        return None
