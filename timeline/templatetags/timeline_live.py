"""``{% live %} … {% endlive %}``: what of a page of a host follows what happens, with the words for where it cannot."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import ImproperlyConfigured
from django.template import Context, Library
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from timeline.live.pages import can_stream

register = Library()


@register.simple_block_tag(takes_context=True)
def live(context: Context, content: str) -> str:
    """
    Keep a part of a page up to date. Its view is decorated with ``timeline.live.live_page``.

    Of several parts, the first has the words and the script for all: they are asked for, and shown, together.

    An answer to a form stays as it is: it says what was wrong with it.

    Raises:
        ImproperlyConfigured: if the template knows no request.
    """
    request = context.get("request")
    if request is None:
        raise ImproperlyConfigured(
            "{% live %} needs the request. Add django.template.context_processors.request to context_processors."
        )
    if request.method != "GET":
        return content
    told = {
        "content": content,
        "address": request.get_full_path(),
        "is_told": can_stream(request),
        "is_first": _is_first(context),
    }
    answer: SafeString = render_to_string("timeline/live.html", told)
    return answer


def _is_first(context: Context) -> bool:
    """Whether it is the first part that is rendered of a page, also where its templates include others."""
    of_page = context.render_context.dicts[0]
    is_first = _SEEN not in of_page
    of_page[_SEEN] = _SEEN
    return is_first


_SEEN: Final = "timeline_live"
