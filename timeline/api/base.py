"""What all views of the API have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property, wraps
from inspect import Parameter, signature
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import RequestDataTooBig
from django.db import router
from django.db.models import Model
from django.http import HttpRequest
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from rest_framework.exceptions import NotAuthenticated, NotFound, ParseError, ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.permissions import SAFE_METHODS, AllowAny, IsAuthenticated
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.throttling import ScopedRateThrottle
from rest_framework.views import APIView

from timeline.api.problems import answer_problem
from timeline.api.schema import TimelineSchema
from timeline.clocks import story_now
from timeline.models import ScheduledTask
from timeline.policy import TimelinePolicy, get_policy
from timeline.store.callers import NamesNobody, looking_up
from timeline.suggestions import with_meant

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

TRYING: Final = "timeline.trying"
TRYING_RATE: Final = "10/min"  # Unless the host sets one; None is no limit.


def taking_its_own(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Let a bound method be called with all that an address has captured: it gets what its parameters name."""
    parameters = signature(handler).parameters
    kinds = [parameter.kind for parameter in parameters.values()]
    room = sum(kind in _POSITIONAL for kind in kinds) - 1

    @wraps(handler)
    def called(request: Any, *args: Any, **captured: Any) -> Any:
        if Parameter.VAR_KEYWORD not in kinds:
            captured = {name: value for name, value in captured.items() if name in parameters}
        if Parameter.VAR_POSITIONAL not in kinds:
            args = args[max(len(args) - room, 0) :]  # What a prefix captures comes first.
        return handler(request, *args, **captured)

    return called


class StrictJSONParser(JSONParser):
    """Reads JSON as RFC 8259 has it: UTF-8, no NaN, names of whole characters, not nested too deeply."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        limit: int | None = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body: bytes = stream.read() if limit is None else stream.read(limit + 1)
        if limit is not None and len(body) > limit:
            raise RequestDataTooBig
        try:
            return _names_are_text(json.loads(body.decode(), parse_constant=_refuse))
        except (ValueError, RecursionError) as error:
            said = _("The body is no JSON that can be read: %(error)s") % {"error": error}
            raise ParseError(said) from None


def _names_are_text(read: Any) -> Any:
    """Refuse names with half a pair of surrogates, of which no answer could tell. What is in values, their fields refuse."""
    if isinstance(read, dict):
        "".join(read).encode()
    for part in read.values() if isinstance(read, dict) else read if isinstance(read, list) else ():
        _names_are_text(part)
    return read


class TheOneThereIs(DefaultContentNegotiation):
    """Answers in the format that a view has, whatever the request accepts: a refusal would come before it is known who asks."""

    def select_renderer(  # type: ignore[override]
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


class TimelineThrottle(ScopedRateThrottle):
    """Counts by the scope of the view's request; no rate in ``DEFAULT_THROTTLE_RATES`` means no limit."""

    scope_attr = "timeline_scope"
    named: str = ""  # The rate's name; empty: it is the scope.
    usual: str | None = None  # The rate, unless the host sets one.

    def get_rate(self) -> str | None:
        rates: dict[str, Any] = api_settings.DEFAULT_THROTTLE_RATES
        rate: str | None = rates.get(self.named or self.scope or "", self.usual)
        return rate


class TryingThrottle(TimelineThrottle):
    """Counts what owners try: each is made and undone."""

    scope_attr, named, usual = "trying_scope", TRYING, TRYING_RATE


# What the host asks of everybody counts here too.
LOGGED_IN: Final[list[Any]] = [
    *(asked for asked in api_settings.DEFAULT_PERMISSION_CLASSES if asked is not AllowAny),  # type: ignore[comparison-overlap]
    IsAuthenticated,
]


class Private(APIView):
    """What is true of all answers: they are kept by no cache, and nobody is logged in by what no database looks for."""

    content_negotiation_class = TheOneThereIs

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        name = (request.method or "").lower()
        if (args or kwargs) and name in self.http_method_names and (handler := getattr(self, name, None)):
            setattr(self, name, taking_its_own(handler))
        return super().dispatch(request, *args, **kwargs)

    def perform_authentication(self, request: Request) -> None:
        """Find out who asks. A NUL in what is sent, or in what an authenticator decodes of it, names nobody."""
        said = (value for name, value in request.META.items() if name.startswith("HTTP_"))
        with suppress(NamesNobody), looking_up():
            if not any("\x00" in str(value) for value in (*request.COOKIES.values(), *said)):
                return super().perform_authentication(request)
        request.user = AnonymousUser()  # Whoever asks for it later, as for a page of errors, does not look it up again.
        raise NotAuthenticated

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Say that it is to be kept by nobody on the way: it is about people, and for one of them."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        patch_cache_control(answer, no_store=True)
        return answer


class TimelineAPI(Private):
    """Base of the views: only for those who have logged in. ``using`` left empty: the site's routers say."""

    using = ""
    parser_classes = [StrictJSONParser]
    renderer_classes = [JSONRenderer]
    permission_classes = LOGGED_IN
    throttle_classes = [*api_settings.DEFAULT_THROTTLE_CLASSES, TimelineThrottle]  # type: ignore[list-item]
    versioning_class = None
    metadata_class = None
    schema = TimelineSchema()
    parameters: ClassVar[tuple[str, ...]] = ()
    """Names of the query parameters that a GET takes."""

    @cached_property
    def policy(self) -> TimelinePolicy:
        return get_policy()

    @cached_property
    def now(self) -> datetime:
        return story_now(self.get_using())

    @property
    def timeline_scope(self) -> str:
        """Whose rate counts: that of reading, or that of writing."""
        return "timeline.read" if self.request.method in SAFE_METHODS else "timeline.write"

    @property
    def actor(self) -> str:
        """Who decides, as the log names them."""
        return str(self.request.user.get_username())[:150]

    def get_using(self, model: type[Model] = ScheduledTask) -> str:
        """Say which database tasks, or entities of a model, are read from; and, where something changes, written to."""
        ask = router.db_for_read if self.request.method in SAFE_METHODS else router.db_for_write
        return self.using or ask(model)

    def get_queryset(self) -> ScheduledTaskQuerySet:
        """What this user may see, of all tasks: where every query starts. Nothing where the view is only described."""
        if getattr(self, "swagger_fake_view", False):
            return ScheduledTask.objects.none()
        return self.policy.visible(ScheduledTask.objects.using(self.get_using()), self.request.user)

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        """Answer errors in the API's own way, whatever the host's other views do."""
        return answer_problem

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse query parameters that mean nothing here, or say nothing."""
        super().initial(request, *args, **kwargs)
        known = self.known_parameters() if request.method in SAFE_METHODS else ()
        for name, values in request.query_params.lists():
            if name not in known:
                raise ValidationError({name: _unknown(name, known)})
            if not all(values):
                raise ValidationError({name: _("Give a value, or leave it out.")})
            if len(values) > 1 and not self.takes_several(name):
                raise ValidationError({name: _("Give it once.")})

    def known_parameters(self) -> Iterable[str]:
        return self.parameters

    def takes_several(self, name: str) -> bool:
        """Whether a query parameter that is known may be given more than once."""
        return False


def _unknown(name: str, known: Iterable[str]) -> str:
    said = _("Unknown query parameter. Known: %(names)s.") % {
        "names": ", ".join(sorted(known)) or pgettext("timeline", "none")
    }
    return str(with_meant(said, name, known))


class NothingHere(TimelineAPI):
    """Any other address below the API's: a problem like the others."""

    schema = None  # type: ignore[assignment]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super(TimelineAPI, self).initial(request, *args, **kwargs)
        raise NotFound
