"""The tag of an endpoint, and ``If-Match`` on what changes it."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from timeline.api.conditions import TAGS

IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": TAGS},
    OpenApiParameter.HEADER,
    description="The endpoint's `ETag`: nothing is done if it has changed since.",
)
TAG: Final = OpenApiParameter(
    "ETag", {"type": "string"}, OpenApiParameter.HEADER, response=[200, 304], description="For `If-Match`."
)


class ChangedMeanwhile(APIException):
    """It is not as the one who asks has seen it."""

    status_code = 412
    default_detail = gettext_lazy("It has changed since you looked. Read it again.")


def tag_of(shown: Any) -> str:
    """Name a state of an endpoint by all that is shown of it."""
    return f'"{sha256(JSONRenderer().render(shown)).hexdigest()[:32]}"'


def check_seen(request: Request, shown: Any) -> None:
    """
    See that an endpoint, locked, is as the one who asks has seen it.

    Raises:
        ValidationError: for what is no tag.
        ChangedMeanwhile: if it is not.
    """
    given = request.headers.get("If-Match", "*").strip()
    if not re.fullmatch(TAGS, given):
        raise ValidationError({"If-Match": _("Give an endpoint's ETag.")})
    if given != "*" and tag_of(shown) not in [part.strip() for part in given.split(",")]:
        raise ChangedMeanwhile
