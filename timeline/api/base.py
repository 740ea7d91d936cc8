"""What all views of the API have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.db import router
from django.db.models import Model
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from rest_framework.exceptions import NotAuthenticated, NotFound, ValidationError
from rest_framework.permissions import SAFE_METHODS, AllowAny, IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from timeline.api.parsing import AlwaysJSON, StrictJSONParser
from timeline.api.problems import answer_problem
from timeline.api.schema import TimelineSchema
from timeline.api.throttling import TimelineThrottle
from timeline.clocks import story_now
from timeline.models import ScheduledTask
from timeline.policy import TimelinePolicy, get_policy

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


# What the host asks of everybody counts here too.
LOGGED_IN: Final[list[Any]] = [
    *(asked for asked in api_settings.DEFAULT_PERMISSION_CLASSES if asked is not AllowAny),  # type: ignore[comparison-overlap]
    IsAuthenticated,
]


class Private(APIView):
    """What is true of all answers: they are kept by no cache, and nobody is logged in by what no database looks for."""

    def perform_authentication(self, request: Request) -> None:
        """Find out who asks. PostgreSQL does not look for a token that has a NUL in it, which cookies can spell."""
        said = (value for name, value in request.META.items() if name.startswith("HTTP_"))
        if any("\x00" in str(value) for value in (*request.COOKIES.values(), *said)):
            raise NotAuthenticated
        super().perform_authentication(request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Say that it is to be kept by nobody on the way: it is about people, and for one of them."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        patch_cache_control(answer, no_store=True)
        return answer


class TimelineAPI(Private):
    """
    Base of the views. Who asks is found out, and throttled, as the host's REST framework settings say; nobody gets in
    without having logged in.

    ``using`` names the database whose tasks these are; left empty, the site's routers say. ``timeline.api.urls.routes``
    makes all addresses for another.
    """

    using = ""
    parser_classes = [StrictJSONParser]
    renderer_classes = [JSONRenderer]
    content_negotiation_class = AlwaysJSON
    permission_classes = LOGGED_IN
    throttle_classes = [*api_settings.DEFAULT_THROTTLE_CLASSES, TimelineThrottle]  # type: ignore[list-item]
    versioning_class = None
    metadata_class = None
    schema = TimelineSchema()
    parameters: ClassVar[tuple[str, ...]] = ()
    """Names of the query parameters that a GET takes."""

    @cached_property
    def policy(self) -> TimelinePolicy:
        """Who may see and do what: one for the request."""
        return get_policy()

    @cached_property
    def now(self) -> datetime:
        """Story time, read once."""
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
                names = ", ".join(sorted(known)) or pgettext("timeline", "none")
                raise ValidationError({name: _("Unknown query parameter. Known: %(names)s.") % {"names": names}})
            if not all(values):
                raise ValidationError({name: _("Give a value, or leave it out.")})
            if len(values) > 1 and not self.takes_several(name):
                raise ValidationError({name: _("Give it once.")})

    def known_parameters(self) -> Iterable[str]:
        """Names of the query parameters that this request may have."""
        return self.parameters

    def takes_several(self, name: str) -> bool:
        """Whether a query parameter that is known may be given more than once."""
        return False


class NothingHere(TimelineAPI):
    """Any other address below the API's: a problem like the others."""

    schema = None  # type: ignore[assignment]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Whoever may ask gets the same answer to whatever they ask."""
        super(TimelineAPI, self).initial(request, *args, **kwargs)
        raise NotFound
