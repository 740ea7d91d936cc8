"""The one setting, ``TIMELINE``: a dict whose names, types and defaults are the fields of ``Settings``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from operator import is_
from types import UnionType
from typing import Any, Final, cast, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import URLValidator, validate_email

from timeline.suggestions import did_you_mean, near

FIRST_RESEND: Final = timedelta(seconds=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    What a host may set in ``TIMELINE``.

    Args:
        ALERTS: Addresses that are written to when a task is discarded; empty: nobody. None: Django's ``ADMINS``.
        AUTOSTART: Whether events and inserted rows start runs. Off in a host's own tests; ``start()`` works always.
        BASE_URL: Where people reach the site, as ``https://example.com``: what mails link to. Empty: they have no links.
        CANCEL_UNDEFINED: Whether sweeps and all that reconciles cancel open rows of tasks that their timeline does not have any
            more, and sweeps end runs of timelines that are not declared. Off: they rest until somebody applies the plan.
        CLOCK: Dotted path of a callable that returns story time (aware). None: the database's clock.
        FIGURES_RETENTION: How long figures by the hour are kept. None: for ever.
        LEASE: How long a claimed or active row belongs to its worker; extended while it runs. Once over, the attempt is lost.
        LIVE_STREAMS: How many open pages a process of the site keeps a connection for, under ASGI; 0: none. The others ask.
        MAX_ATTEMPTS: Default budget of handler errors before a task is discarded; at least 1.
        MAX_GONE: If more entities than this are missing in one look, they are not taken for deleted. None: any number may be.
        MAX_LOST: Budget of attempts whose worker died, not counting a lost first attempt; at least 1.
        MAX_PENDING: How many claimed tasks of a queue may be on their way through the broker at a time; at least 1.
        METRICS_TOKEN: A request with it may read the metrics; 16 characters or more. Empty: no token gives access.
        POLICY: Dotted path of the class that says who may see and do what, ``timeline.policy.TimelinePolicy`` or a subclass.
        POLL_INTERVAL: The longest sleep of a poller. A task that is twice this late is overdue.
        QUEUE_PREFIX: First part of the names of Celery's queues. Sites that share a broker need one each.
        RECORDED_EVENTS: Names of events that no timeline knows and that are recorded on purpose.
        RETENTION: How long ``timeline.maintain`` keeps what has ended. None: for ever.
        SECRET_NAMES: Endings, as whole words, that no name in a payload may have; empty: all names are allowed.
        SILENCE: How long a worker may give no sign before what it runs counts as lost.
        SITE: Name of this site: production and staging need one each. A database of another site is not worked on.
        STRICT_EVENTS: Whether an event that no timeline knows is refused (``UnknownEvent``): True: always; False: never. None:
            from outside, and where it is only tried. What is not refused brings a warning, with ``DEBUG`` and in tests.
        SWEEP_INTERVAL: How often all open runs are compared with their entities, for changes that no signal saw. None: never.
    """

    ALERTS: Collection[str] | None = None
    AUTOSTART: bool = True
    BASE_URL: str = ""
    CANCEL_UNDEFINED: bool = False
    CLOCK: str | None = None
    FIGURES_RETENTION: timedelta | None = timedelta(days=90)
    LEASE: timedelta = timedelta(seconds=60)
    LIVE_STREAMS: int = 500
    MAX_ATTEMPTS: int = 5
    MAX_GONE: int | None = 20
    MAX_LOST: int = 3
    MAX_PENDING: int = 1000
    METRICS_TOKEN: str = ""
    POLICY: str = "timeline.policy.TimelinePolicy"
    POLL_INTERVAL: timedelta = timedelta(seconds=1)
    QUEUE_PREFIX: str = "timeline"
    RECORDED_EVENTS: Collection[str] = ()
    RETENTION: timedelta | None = None
    SECRET_NAMES: Collection[str] = (
        "otp",
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "api_key",
        "private_key",
        "credentials",
        "passcode",
        "pin",
        "pwd",
        "cvc",
        "cvv",
    )
    SILENCE: timedelta = timedelta(seconds=12)
    SITE: str = ""
    STRICT_EVENTS: bool | None = None
    SWEEP_INTERVAL: timedelta | None = timedelta(minutes=10)

    @property
    def alert_addresses(self) -> list[str]:
        """Who is written to when something fails for good; nobody, where there are none."""
        if self.ALERTS is not None:
            return list(self.ALERTS)
        return [admin if isinstance(admin, str) else admin[1] for admin in settings.ADMINS]

    @property
    def sign_every(self) -> timedelta:
        """How often a worker gives a sign."""
        return self.SILENCE / 4

    @property
    def missed_after(self) -> timedelta:
        """How long ago a worker's last sign is when it is missed for the first time."""
        return self.SILENCE - self.sign_every

    @property
    def grace(self) -> timedelta:
        """
        How long a worker that gives signs is waited for once, when a lease of its own ran out: until it is to extend it next,
        and a beat. All leases run out together when the database's clock is set forward.
        """
        return self.LEASE / 3 + min(self.LEASE / 3, self.sign_every)

    @property
    def resend_after(self) -> timedelta:
        """How long a message is waited for before it is sent again, the first time; then twice as long, and so on."""
        return min(self.LEASE, FIRST_RESEND)

    @property
    def overdue_after(self) -> timedelta:
        """How late a task must be to count as overdue."""
        return 2 * self.POLL_INTERVAL


_MAY_BE_NONE: Final = {"LIVE_STREAMS"}  # Whose 0 has a meaning.
_SECRET: Final = {"METRICS_TOKEN"}  # Whose value no message shows.
_LEAST_TOKEN: Final = 16  # Characters.
_OF_PYTHON: Final[dict[Any, tuple[type, ...]]] = {Collection: (tuple, list, set, frozenset), Sequence: (list, tuple)}

_read: tuple[dict[str, Any], Settings] = ({}, Settings())  # What was given last, and what it makes.


def get_settings() -> Settings:
    """Read ``settings.TIMELINE`` as it is now; ``ImproperlyConfigured`` for an unknown name or a value of the wrong kind."""
    global _read
    given: dict[str, Any] = getattr(settings, "TIMELINE", {})
    before, known = _read
    if given == before and all(map(is_, map(type, given.values()), map(type, before.values()))):  # 1 == True.
        return known
    if not isinstance(given, dict):
        raise ImproperlyConfigured(f"TIMELINE is {given!r}. Make it a dict.")
    for name, value in given.items():
        _check(name, value)
    _read = (dict(given), Settings(**given))
    return _read[1]


def called_otherwise(setting: str, known: Collection[str]) -> list[str]:
    """
    Names of settings that are called almost like ``setting``, and hold what that would (``known``): nobody reads them. Those
    called after an installed app, such as ``TIMELINE_OJS``, are that app's.
    """
    read = {setting, *(config.label.upper() for config in apps.get_app_configs())}
    alike = [name for name in dir(settings) if name.isupper() and name not in read and near(name, [setting])]
    given = {name: getattr(settings, name) for name in alike}
    return [name for name, value in given.items() if isinstance(value, dict) and not value.keys().isdisjoint(known)]


def _check(name: str, value: object) -> None:
    check_kind("TIMELINE", Settings, name, value, instead="of another type" if name in _SECRET else "")
    if problem := _PROBLEMS[name](value) if name in _PROBLEMS else "":
        raise ImproperlyConfigured(problem)
    check_positive("TIMELINE", name, value, may_be_none=name in _MAY_BE_NONE)


def check_kind(setting: str, declared: type, name: str, value: object, *, instead: str = "") -> None:
    """Refuse (``ImproperlyConfigured``) what is no field of ``declared``, or of another type; ``instead`` of its value."""
    kinds = _kinds_of(declared)
    if name not in kinds:
        said = f"{setting}[{name!r}] is not a setting. {did_you_mean(name, list(kinds))} Known: {', '.join(kinds)}."
        raise ImproperlyConfigured(" ".join(said.split()))
    if not isinstance(value, kinds[name]) or (isinstance(value, bool) and bool not in kinds[name]):
        wanted = " or ".join(kind.__name__ for kind in kinds[name])
        raise ImproperlyConfigured(f"{setting}[{name!r}] is {instead or repr(value)}. Give a value of type {wanted}.")


def check_positive(setting: str, name: str, value: object, *, may_be_none: bool = False) -> None:
    """Refuse (``ImproperlyConfigured``) a time or a number of nothing, or less than that."""
    if (isinstance(value, timedelta) and value <= timedelta(0)) or (type(value) is int and value < (not may_be_none)):
        raise ImproperlyConfigured(f"{setting}[{name!r}] is {value!r}. Give a positive value.")


@cache
def _kinds_of(declared: type) -> dict[str, tuple[type, ...]]:
    return {name: _kinds(hint) for name, hint in get_type_hints(declared).items()}


def _kinds(hint: Any) -> tuple[type, ...]:
    """What values of an annotation may be: of collections, those of Python's own that settings are written with."""
    if isinstance(hint, UnionType):
        return tuple(kind for each in get_args(hint) for kind in _kinds(each))
    return _OF_PYTHON.get(get_origin(hint), (hint,))


def _problem_of_alerts(value: object) -> str:
    wrong = [each for each in cast("Collection[object]", value or ()) if not _is_address(each)]
    if not wrong:
        return ""
    return f"TIMELINE['ALERTS'] has {wrong[0]!r}. Give addresses like 'ops@example.com', or none."


def _problem_of_base_url(value: object) -> str:
    text = cast("str", value)
    if not text or _is_base_url(text):
        return ""
    return (
        f"TIMELINE['BASE_URL'] is {text!r}. Give scheme and host as people reach the site, like 'https://example.com'."
    )


def _problem_of_token(value: object) -> str:
    if not 0 < len(cast("str", value)) < _LEAST_TOKEN:
        return ""
    return f"TIMELINE['METRICS_TOKEN'] is short. Give a random one of {_LEAST_TOKEN} characters or more, or none."


_PROBLEMS: Final[dict[str, Callable[[object], str]]] = {
    "ALERTS": _problem_of_alerts,
    "BASE_URL": _problem_of_base_url,
    "METRICS_TOKEN": _problem_of_token,
}


def _is_address(value: object) -> bool:
    try:
        validate_email(value if isinstance(value, str) else "")
    except ValidationError:
        return False
    return True


def _is_base_url(text: str) -> bool:
    """Whether it is scheme, host and perhaps a path, and nothing that leads elsewhere: no account, question or fragment."""
    try:
        URLValidator(schemes=["http", "https"])(text)
    except ValidationError:
        return False
    return not ("@" in urlsplit(text).netloc or "?" in text or "#" in text)
