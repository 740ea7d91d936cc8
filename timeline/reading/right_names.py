"""Permissions in words: what Django calls them, of which code has the dotted name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib.auth import get_permission_codename


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
