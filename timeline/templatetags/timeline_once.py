"""Parts of pages that come hundreds of times on one, and are always the same: written once, and kept."""

from __future__ import annotations

from functools import lru_cache

from django.template import Library
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from timeline.told_times import from_now

register = Library()


@register.simple_tag
def sign(state: str) -> SafeString:
    """Draw the sign of a state."""
    return _sign(str(state))


@register.simple_tag
def items_head() -> SafeString:
    """Write the head of a table of items, in the present language."""
    return _items_head(get_language())


register.filter("from_now", from_now)


@lru_cache(maxsize=64)
def _sign(state: str) -> SafeString:
    return render_to_string("admin/timeline/_sign.html", {"state": state})


@lru_cache(maxsize=128)
def _items_head(_language: str | None) -> SafeString:
    return render_to_string("admin/timeline/_items_head.html")
