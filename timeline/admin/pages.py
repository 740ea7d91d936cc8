"""What all pages share: whose tasks they show, the frame around them, and the addresses they lead to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache, cached_property, partial, wraps
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple
from urllib.parse import urlencode

from django.apps import apps
from django.contrib.admin import ModelAdmin
from django.core.signing import BadSignature, Signer
from django.db import router
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import pgettext

from timeline.admin.actions import MAX_CHOSEN, feature_actions
from timeline.admin.bar import BarEntry, BarPlace, bar_of, counts_asked, counts_kept, keep_counts
from timeline.admin.beside import beside_of
from timeline.admin.list_query import PAYLOAD, Question, asked
from timeline.dispatch.worker_signs import is_silent, silent
from timeline.hooks import of_features
from timeline.live.pages import can_stream
from timeline.models import ScheduledTask
from timeline.policy import get_policy
from timeline.store.multi_query import gather_now
from timeline.suggestions import near
from timeline.told_times import told_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.db.models import QuerySet
    from django.http import HttpRequest

    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import TimelinePolicy, User
    from timeline.reading.attention import Ask
    from timeline.store.multi_query import Words

    Base = ModelAdmin[ScheduledTask]
else:
    Base = ModelAdmin

_KEY: Final = "timeline_draft"
_FIELDS: Final = ("action", "where", "alone", "reason", "at")
_LONGEST: Final = 1000  # Characters of each that are kept.
_LONGEST_ID: Final = 36  # Of a task: who has not logged in can write no more than this into the store of sessions.

_LIST: Final = frozenset(Question.__dataclass_fields__)
OF_ENTITY: Final = frozenset({"label", "id"})
# What each view is asked by its address. Views that are neither here nor of features are asked nothing.
PARAMETERS: Final[Mapping[str, frozenset[str]]] = {
    "change_view": frozenset({"before", "one", "other"}),
    "changelist_view": _LIST | {"part", "chosen"},
    "dead_view": frozenset({"cause", "group", "since", "task"}),
    "entity_view": OF_ENTITY | {"span"},
    "find_view": frozenset({"words", "suggest"}),
    "health_view": frozenset({"span", "task"}),
    "inventory_view": frozenset({"starts"}),
    "journal_view": frozenset({"actor", "before", "day"}),
    "matching_view": _LIST | {"action"},
    "redrive_view": frozenset({"cause", "group"}),
}
PAGES: Final = (
    "attention",
    "changelist",
    "act",
    "entity",
    "find",
    "dead",
    "health",
    "inventory",
    "journal",
    "matching",
    "redrive",
)
# What a request keeps.
_POLICY: Final = "_timeline_policy"
_UNPOLLED: Final = "_timeline_unpolled"
LIVE: Final = frozenset({"attention", "dead", "entity", "health", "inventory", "task", "timeline"})
# Signs that turn the direction of the text after them, also of ours: an address would read as another one.
_TURNS: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_TURNING: Final = re.compile(f"<[^>]*>|{_TURNS.pattern}")
_ANY_TASK: Final = "00000000-0000-0000-0000-000000000000"


def made_for(user: User) -> str:
    """What a form says of whom it was made for."""
    return _signer().sign(str(user.pk))


def keep(request: HttpRequest) -> None:
    """Keep what a form says that was made for somebody."""
    try:
        who = _signer().unsign(request.POST.get("who", ""))
    except BadSignature:
        return
    said = {
        name: [request.POST[name][:_LONGEST]]
        for name in _fields(request.POST.get("action", ""))
        if name in request.POST
    }
    said["who"] = [who]
    request.session[_KEY] = said | {"task": [text[:_LONGEST_ID] for text in request.POST.getlist("task")[:MAX_CHOSEN]]}


def _fields(deed: str) -> set[str]:
    theirs = feature_actions().get(deed)
    more = (*theirs.given, *(theirs.form.base_fields if theirs.form else ())) if theirs else ()
    return {*_FIELDS, *more}


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


def _signer() -> Signer:
    return Signer(salt="timeline.draft")


def forget(request: HttpRequest) -> None:
    """Keep nothing any more: it is done, or something else is asked for."""
    request.session.pop(_KEY, None)


class FeaturePage(NamedTuple):
    """
    A page of a feature.

    Args:
        name: Of its address, and of its template. One without parameters in its path is in ``urls`` of templates.
        path: Below the address of the list.
        view: Shows it, given the request and what the path has.
        parameters: What its address may be asked.
        is_live: Whether it follows what happens while it is open.
        takes_forms: Whether something can be sent to it.
    """

    name: str
    path: str
    view: Callable[..., HttpResponse]
    parameters: frozenset[str] = frozenset()
    is_live: bool = False
    takes_forms: bool = False


class FeaturePages:
    """
    Base of the pages of a feature, which names them in ``PAGES`` of its module ``pages``. Made once for each admin.

    ``ROUTES`` are these pages; their views are functions of the class.

    Args:
        admin: Whose pages they are: rights, the frame and the database are asked of it.
    """

    ROUTES: ClassVar[tuple[FeaturePage, ...]]

    def __init__(self, admin: Pages) -> None:
        self.admin, self.admin_site = admin, admin.admin_site
        self.page, self.address, self.visible = admin.page, admin.address, admin.visible
        self.now_of, self.now_and = admin.now_of, admin.now_and
        self.has_view_permission = admin.has_view_permission

    @property
    def alias(self) -> str:
        """The database whose tasks are shown."""
        return self.admin.alias

    def counted(self, request: HttpRequest) -> Iterable[Ask]:
        """What the bar counts of it, for who may see all tasks."""
        return ()

    def places(self, request: HttpRequest, counts: Mapping[str, int]) -> Iterable[BarPlace]:
        """Its places in the bar, for this user."""
        return ()

    def beside_list(self, request: HttpRequest) -> Iterable[tuple[str, str]]:
        """Links above the list, for this user: what is read there, and where it leads."""
        return ()


@cache
def features() -> tuple[type[FeaturePages], ...]:
    """The pages of all features."""
    return tuple(chain.from_iterable(of_features("pages", "PAGES")))


def routes() -> Iterator[FeaturePage]:
    """The same, page by page."""
    return chain.from_iterable(each.ROUTES for each in features())


@cache
def parameters() -> dict[str, frozenset[str]]:
    """What each view is asked by its address, by the name of the view."""
    return {**PARAMETERS, **{page.view.__name__: page.parameters for page in routes()}}


@cache
def plain_names() -> tuple[str, ...]:
    """The pages whose addresses have no parameters in their paths."""
    return (*PAGES, *(page.name for page in routes() if "<" not in page.path))


@cache
def live_names() -> frozenset[str]:
    """Pages whose content follows what happens while they are open. The list refreshes a part of itself."""
    return LIVE.union(page.name for page in routes() if page.is_live)


def misspelt(given: Iterable[str], view: str) -> tuple[str, str] | None:
    """Find a parameter that no page knows and that is like one of this page's; with the one that is meant."""
    known, every = parameters().get(view, frozenset()), frozenset().union(*parameters().values())
    for name in given:
        if name not in every and not name.startswith(PAYLOAD) and (meant := near(name, known, most=1)):
            return name, meant[0]
    return None


class Shown(TemplateResponse):
    """A page that shows signs which would change how the rest reads as �; what fields send and where links lead stays."""

    @property
    def rendered_content(self) -> str:
        """The page."""
        with told_in(timezone.get_current_timezone()):
            text = super().rendered_content
        return _TURNING.sub(_shown, text) if _TURNS.search(text) else text


def _shown(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith("<") else "\N{REPLACEMENT CHARACTER}"


def policy_of(request: HttpRequest) -> TimelinePolicy:
    """Who may see and do what: one for the request, so that what it has found out is asked once."""
    known: tuple[object, TimelinePolicy] | None = request.__dict__.get(_POLICY)
    if known is None or known[0] != request.user.pk:
        known = request.__dict__[_POLICY] = (request.user.pk, get_policy())
    return known[1]


def is_unpolled(request: HttpRequest) -> bool:
    """Whether nobody polls, as the statement has found that reads the time for a page."""
    return bool(request.__dict__.get(_UNPOLLED))


class Pages(Base):
    """
    Base of the pages.

    ``using`` names the database whose tasks are shown; left empty, it is where the routers have them written. A second
    admin site, with a subclass of ``TaskAdmin``, shows another.
    """

    using = ""

    @cached_property
    def of_features(self) -> list[FeaturePages]:
        """The pages of features, as they are in this admin."""
        return [each(self) for each in features()]

    @property
    def alias(self) -> str:
        """The database whose tasks are shown."""
        return self.using or router.db_for_write(ScheduledTask)

    def now_of(self, request: HttpRequest) -> datetime:
        """Story time, and in the same statement what each page says at its top: whether nobody polls, and what waits."""
        now, _found = self.now_and(request, [])
        return now

    def now_and(self, request: HttpRequest, asked: Sequence[QuerySet[Any] | Words]) -> tuple[datetime, list[list[Any]]]:
        """The same with what else is asked in this statement, and what was found."""
        top = self.asked_at_the_top(request)
        now, found = gather_now([*top, *asked], using=self.alias)
        self.keep_the_top(request, found[: len(top)])
        return now, found[len(top) :]

    def asked_at_the_top(self, request: HttpRequest) -> list[QuerySet[Any] | Words]:
        """What each page says at its top, as parts of a statement; ``keep_the_top`` takes what was found."""
        return [
            silent(using=self.alias).values_list("pk"),
            *counts_asked(request, policy_of(request), self.visible(request), self._counted_by_features(request)),
        ]

    def keep_the_top(self, request: HttpRequest, found: Sequence[Sequence[Any]]) -> None:
        """Keep it until the page is filled in."""
        unpolled, *counts = found
        request.__dict__[_UNPOLLED] = bool(unpolled)
        keep_counts(request, *counts)

    def visible(self, request: HttpRequest) -> ScheduledTaskQuerySet:
        """The tasks that the user may see. Each page starts here."""
        return policy_of(request).visible(ScheduledTask.objects.using(self.alias), request.user)

    def asked_rightly(self, view: Callable[..., Any]) -> Callable[..., Any]:
        """
        Let a view say so when its address asks what no page knows and what is like something that this page knows; otherwise,
        let it tell times in the zone of the site, or that which the site has activated for this user.
        """

        @wraps(view)
        def minding(request: HttpRequest, *args: Any, **named: Any) -> Any:
            found = misspelt(request.GET, view.__name__)
            if found is None or not self.has_view_permission(request):
                with told_in(timezone.get_current_timezone()):
                    return view(request, *args, **named)
            given, meant = found
            said, title = {"given": given, "meant": meant}, pgettext("timeline", "Not understood")
            response = self.page(request, "misspelt", title, self.now_of(request), said)
            response.status_code = 400
            return response

        return minding

    def page(self, request: HttpRequest, name: str, title: str, now: datetime, context: dict[str, Any]) -> HttpResponse:
        """Fill in a template; nobody keeps a copy of the answer."""
        request.current_app = self.admin_site.name
        shared = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "now": now,
            "zone": timezone.get_current_timezone(),
            "zone_name": timezone.get_current_timezone_name(),
            "site_name": self.admin_site.name,
            "frame": "admin/timeline/unfold.html" if apps.is_installed("unfold") else "admin/base_site.html",
            "who": made_for(request.user),
            "urls": {name: self.address(name) for name in plain_names()},
            # What comes before and after its key: an address is made up by Django for one task, not for hundreds.
            "task_at": self.address("change", _ANY_TASK).split(_ANY_TASK),
            "live": request.get_full_path() if name in live_names() and request.method == "GET" else "",
            "is_told": can_stream(request),
            "login": self.login_for(request.get_full_path()),
            # Asked where it is shown, unless it is known.
            "nobody_polls": request.__dict__.get(_UNPOLLED, partial(is_silent, using=self.alias)),
            "bar": partial(self.bar, request, name),
            "beside": partial(beside_of, request, name, context, site=self.admin_site.name, using=self.alias),
        }
        response = Shown(request, f"admin/timeline/{name}.html", {**shared, **context})
        response["Cache-Control"] = "no-store, private"
        return response

    def bar(self, request: HttpRequest, name: str) -> list[BarEntry]:
        """The bar of each page; what it counts was read with the page. Pages of webhooks are ``endpoints``."""
        if (counts := counts_kept(request)) is None:
            self.now_of(request)
            counts = counts_kept(request) or {}
        places = [place for each in self.of_features for place in each.places(request, counts)]
        return bar_of(request, name, self.address, counts, places, site=self.admin_site.name)

    def _counted_by_features(self, request: HttpRequest) -> list[Ask]:
        return [ask for each in self.of_features for ask in each.counted(request)]

    def address(self, name: str, *args: object) -> str:
        """Address of a page."""
        return reverse(f"{self.admin_site.name}:timeline_scheduledtask_{name}", args=args)

    def login_for(self, where: str) -> str:
        """Address of the login that leads back to a page."""
        return f"{reverse(f'{self.admin_site.name}:login')}?{urlencode({'next': where})}"

    def list_as_left(self, given: QueryDict) -> str:
        """Address of the list as a form says it was left: only what a question may say is taken over."""
        where = asked(QueryDict(given.get("where", "").removeprefix("?"))).where()
        return self.address("changelist") + (where if where != "?" else "")
