"""Checks of what is declared: against open rows, against permissions, and for what was probably meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.auth import get_permission_codename
from django.core.checks import CheckMessage, Error, Warning
from django.db.models import Count, Exists, F, OuterRef

from timeline.checks.database import are_made
from timeline.models import ScheduledTask, TimelineRun, model_of
from timeline.registry import registry
from timeline.suggestions import did_you_mean

if TYPE_CHECKING:
    from timeline.definition import Definition


MOST_NAMED: Final = 5

_DJANGOS: Final = "django.contrib.auth."
# What starts_on takes, called; as text it is the name of an event.
_CALLED: Final = ("created", "after_run", "hourly", "daily", "weekly", "monthly", "cron")
_OF_A_START: Final = re.compile(r"start|begin|trigger|event")  # What an attribute for that may be called.
_OF_OURS: Final = re.compile(r"^\s*(from|import) timeline\b", re.MULTILINE)


def check_rows(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """
    Open rows, ``timeline.W005``: whose key no timeline declares; ``W006``: whose model is not installed. Never errors, for
    ``migrate``.
    """
    return [message for alias in databases or () for message in _of_database(alias)]


def _of_database(alias: str) -> list[CheckMessage]:
    known = set(registry.task_keys())
    keys: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    for task_key, label, count in _open_rows(alias):
        if task_key not in known and not registry.is_elsewhere(task_key):
            keys[task_key] += count
        if label and model_of(label) is None:
            labels[label] += count
    return [*_unknown_keys(keys, alias), *_unknown_labels(labels, alias)]


def _open_rows(alias: str) -> list[tuple[str, str, int]]:
    """Count open rows of each task key and label, in one query; none before ``migrate`` has made the table."""
    if not are_made(alias, ScheduledTask):
        return []
    groups = ScheduledTask.objects.using(alias).open().order_by().values_list("task_key", "entity_label")
    return list(groups.annotate(Count("pk")))


def _unknown_keys(keys: Counter[str], alias: str) -> list[CheckMessage]:
    if not keys:
        return []
    example = min(keys)
    hint = f"{registry.brought_back_by(example)} " + (
        'Bring the task back (a class that was renamed keeps its keys with name = "…"); or apply the plan: '
        f"manage.py timeline_apply {example.partition('.')[0]} --database {alias}; or cancel its rows: "
        f'cancel(ScheduledTask.objects.using("{alias}").open().filter(task_key="{example}"), reason="…").'
    )
    message = f"Nothing runs these open rows of the database {alias!r}, as no timeline declares their keys: "
    return [Warning(f"{message}{_named(keys)}.", hint=hint.strip(), id="timeline.W005")]


def _unknown_labels(labels: Counter[str], alias: str) -> list[CheckMessage]:
    if not labels:
        return []
    hint = f"Say what the model is called now: manage.py timeline_relabel {min(labels)} app.model --database {alias}."
    message = f"These open rows of the database {alias!r} are about models that are not installed: "
    return [Warning(f"{message}{_named(labels)}.", hint=hint, id="timeline.W006")]


def _named(counts: Counter[str]) -> str:
    """Names with their counts, those of the most rows first."""
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    more = f" and {len(first) - MOST_NAMED} more" if len(first) > MOST_NAMED else ""
    return ", ".join(f"{name} ({count})" for name, count in first[:MOST_NAMED]) + more


def check_once(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """``timeline.W011``: open runs of a timeline with ``once``, beside which there is another of the same entity and key."""
    names = [known.name for known in registry if known.once]
    return [message for alias in databases or () for message in _begun_twice(alias, names)] if names else []


def _begun_twice(alias: str, names: Sequence[str]) -> list[CheckMessage]:
    if not are_made(alias, TimelineRun):
        return []
    runs = TimelineRun.objects.using(alias)
    place = {name: OuterRef(name) for name in ("entity_label", "entity_id", "timeline", "key")}
    others = runs.filter(**place).exclude(pk=OuterRef("pk"))
    twice = runs.open().filter(Exists(others), timeline__in=names, once=False).order_by(F("pk").desc())
    found = [
        f"{run.timeline} of {run.entity_ref}{f', key {run.key!r}' if run.key else ''}"
        for run in twice[: MOST_NAMED + 1]
    ]
    if not found:
        return []
    more = " and more" if len(found) > MOST_NAMED else ""
    message = (
        f"These runs in the database {alias!r} began again before their timelines said once = True, and are open: "
    )
    hint = 'Nothing begins again from now on. If one of them should not go on, end it: leave("…", entity, key="…", reason="…").'
    return [Warning(f"{message}{'; '.join(found[:MOST_NAMED])}{more}.", hint=hint, id="timeline.W011")]


def check_permissions(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """
    Permissions of ``asks`` and ``approval(by=…)``; a database is asked only if given, for one that no model has.

    ``timeline.E006``: no such app, or its models have one called almost so. ``timeline.W015``: no model has it; a migration or
    an authentication backend may.
    """
    if not apps.is_installed("django.contrib.auth"):
        return []
    known = set(_of_models())
    unknown = [(where, name) for where, name in _permissions_named() if name not in known]
    made = _of_databases({name for _where, name in unknown}, databases or ())
    return [_message(where, name, known) for where, name in unknown if name not in made]


def _permissions_named() -> Iterator[tuple[str, str]]:
    """Where a permission is named, and which."""
    for definition in registry:
        home = definition.cls.__name__
        for event, ask in definition.asks.items():
            yield from ((f"{home}.asks[{event!r}]", name) for name in ask.permissions)
        for name, task in definition.tasks.items():
            if task.approval is not None:
                yield f"{home}.{name}, approval(by=…)", task.approval.by


def _of_models() -> Iterator[str]:
    """The permissions that ``migrate`` makes for the models of installed apps."""
    for model in apps.get_models():
        meta = model._meta
        codenames = [get_permission_codename(action, meta) for action in meta.default_permissions]
        codenames += [codename for codename, _name in meta.permissions]
        yield from (f"{meta.app_label}.{codename}" for codename in codenames)


def _of_databases(names: set[str], databases: Sequence[str]) -> set[str]:
    """Those of some permissions that a database has. None before ``migrate`` has made the table."""
    permissions: Any = apps.get_model("auth", "Permission")
    found: set[str] = set()
    for alias in databases if names else ():
        if are_made(alias, permissions):
            rows = permissions.objects.using(alias).filter(codename__in={name.partition(".")[2] for name in names})
            found |= {".".join(row) for row in rows.values_list("content_type__app_label", "codename")}
    return found


def _message(where: str, name: str, known: set[str]) -> CheckMessage:
    label, _dot, codename = name.partition(".")
    if label not in apps.app_configs:
        said = f"{where} names {name!r}, and no app has the label {label!r}."
        near = did_you_mean(name, known) or did_you_mean(label, apps.app_configs)
    else:
        said = f"{where} names {name!r}, and no model of {label!r} has a permission {codename!r}."
        near = did_you_mean(name, {each for each in known if each.startswith(f"{label}.")})
    own = [path for path in settings.AUTHENTICATION_BACKENDS if not path.startswith(_DJANGOS)]
    is_wrong = (near or label not in apps.app_configs) and not own
    remedy = "Name one of a model: a default one, or one of Meta.permissions. If something else makes it, silence this check."
    hint = f"{near} {remedy}".strip()
    return Error(said, hint=hint, id="timeline.E006") if is_wrong else Warning(said, hint=hint, id="timeline.W015")


def check_modules(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.W016``: an app has a module ``timeline`` that uses this package, and none that is called ``timelines``."""
    return [
        Warning(
            f"{config.name}.timeline is not read: timelines are found in modules that are called timelines.",
            hint=f"Call it {config.name}.timelines.",
            id="timeline.W016",
        )
        for config in (apps.get_app_configs() if app_configs is None else app_configs)
        if _has_only_one_called_timeline(config)
    ]


def _has_only_one_called_timeline(config: AppConfig) -> bool:
    with suppress(ImportError, ValueError, OSError):
        found = find_spec(f"{config.name}.timeline")
        if found is None or not found.origin or find_spec(f"{config.name}.timelines"):
            return False
        return bool(_OF_OURS.search(Path(found.origin).read_text(encoding="utf-8")))
    return False


def check_starts(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """
    ``timeline.W017``: an event is called as a start of another kind, ``"created"``; or nothing starts a timeline, and it has an
    attribute that is called as if it did.
    """
    return [
        Warning(problem, hint=f"{hint} If it is meant so, silence this check.", id="timeline.W017")
        for known in registry
        for problem, hint in (*_called(known), *_unread(known))
    ]


def _called(known: Definition) -> Iterator[tuple[str, str]]:
    for start in known.starts_on:
        name = start.partition("(")[0] if isinstance(start, str) else ""
        if name in _CALLED:
            problem = f"{known.cls.__name__} has starts_on = {start!r}, which is the name of an event."
            yield problem, f"Did you mean {name}(…), without quotes?"


def _unread(known: Definition) -> Iterator[tuple[str, str]]:
    if known.starts_on or known.has_states:
        return
    for name, value in vars(known.cls).items():
        is_ours = name.startswith("_") or name in {*known.cls._options, "definition"}
        if not is_ours and _OF_A_START.search(name) and value and isinstance(value, str | tuple):
            problem = f"No event starts {known.cls.__name__}, only start(); its {name} = {value!r} is no option."
            yield problem, "Did you mean starts_on?"
