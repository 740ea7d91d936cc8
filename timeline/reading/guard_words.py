"""Guards and permissions in words: what people call the condition of a task, and what Django calls a permission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from django.apps import apps
from django.contrib.auth import get_permission_codename
from django.db.models import Q
from django.utils.translation import pgettext_lazy

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

    from timeline.definition import Definition

_OPTIONS: Final[Mapping[str, StrPromise]] = {
    "unless": pgettext_lazy("timeline", "unless %(condition)s"),
    "only_if": pgettext_lazy("timeline", "only if %(condition)s"),
    "until": pgettext_lazy("timeline", "until %(condition)s"),
}


def guard_in_words(definition: Definition | None, option: str, guard: object, *, with_name: bool = False) -> str:
    """
    A guard for people: *unless the account is paid for*, or, without a title, *unless has payment*. ``with_name``: followed by
    the name in code, if it has a title.
    """
    return _in_words(definition, option, name_of(guard), with_name=with_name)


def refused_in_words(definition: Definition | None, reason: str) -> str:
    """The same from the reason of a row that its guard has refused: ``unless has_payment``. Any other text stays as it is."""
    option, _blank, name = reason.partition(" ")
    return _in_words(definition, option, name) if option in _OPTIONS and name else reason


def name_of(guard: object) -> str:
    """What the code calls it; a condition of the database as Python writes it."""
    return str(guard) if isinstance(guard, Q) else getattr(guard, "__name__", type(guard).__name__)


def _in_words(definition: Definition | None, option: str, name: str, *, with_name: bool = False) -> str:
    title = definition.title_of(name) if definition is not None else ""
    said = title or (name.replace("_", " ").strip() if name.isidentifier() else name)
    if title and with_name:
        said = f"{title} ({name})"
    return str(_OPTIONS[option]) % {"condition": said}


def right_in_words(permission: str) -> str:
    """``portal.resolve_booking`` → *Can resolve bookings*, as the models of the app have it; of others the dotted name."""
    label, _dot, codename = permission.partition(".")
    if label not in apps.app_configs:
        return permission
    named = (name for meta in _metas(label) for known, name in _named(meta) if known == codename)
    return next(named, permission)


def _metas(label: str) -> Iterator[Any]:
    return (model._meta for model in apps.get_app_config(label).get_models())


def _named(meta: Any) -> Iterator[tuple[str, str]]:
    """Each permission of a model with its name: those that it declares, and Django's own, as Django names them."""
    yield from ((codename, str(name)) for codename, name in meta.permissions)
    for action in meta.default_permissions:
        yield get_permission_codename(action, meta), f"Can {action} {meta.verbose_name_raw}"
