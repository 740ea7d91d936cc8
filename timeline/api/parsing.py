"""What comes in: JSON in UTF-8, no more than the site takes, and always answered in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import IO, Any, NoReturn

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class StrictJSONParser(JSONParser):
    """Reads JSON as RFC 8259 has it: UTF-8, no NaN, names of whole characters, not nested too deeply."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Read the body, bounded by ``DATA_UPLOAD_MAX_MEMORY_SIZE``."""
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


class AlwaysJSON(DefaultContentNegotiation):
    """Answers in JSON whatever the request says it accepts."""

    def select_renderer(  # type: ignore[override]
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Take the one there is."""
        return renderers[0], renderers[0].media_type


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")
