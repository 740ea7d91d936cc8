"""
Write the pages of the reference that say what the code says: ``python docs/generate.py``.

Options, settings, verbs, commands, signals, methods and errors are read from their docstrings, signatures and parsers, with
``docstrings.py``. A test says when a page is not what this would write.
"""

from __future__ import annotations

import inspect
import os
import pkgutil
import re
import sys
from collections.abc import Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, is_typeddict

from docstrings import Said, attributes_of, call_of, default, markdown, said_of

DOCS = Path(__file__).resolve().parent
TO_BE_READ = "<!-- Written by docs/generate.py from the code. -->"

# Methods of QuerySets that hosts may call; the others are of the package itself.
QUESTIONS = {
    "ScheduledTask": [
        "for_entity",
        "open",
        "final",
        "upcoming",
        "due",
        "overdue",
        "due_between",
        "of_timeline",
        "about",
        "in_order",
        "dead_letters",
        "failed_alike",
        "would_have_run",
    ],
    "TimelineRun": ["for_entity", "open", "of_timeline", "of_machines", "ended_since"],
    "Event": ["for_entity"],
    "Hold": ["open", "oldest_first"],
}
POLICY = [
    "visible",
    "concerning",
    "belongings",
    "sees_timeline",
    "sees_model",
    "sees_payload",
    "sees_decisions",
    "sees_health",
    "allows",
    "is_theirs",
    "actions",
    "may_decide",
    "may_emit",
    "may_say",
    "may_ask",
    "asked_of",
    "visible_holds",
    "may_hold",
    "may_apply",
    "visible_bulk_actions",
    "customer_page",
    "calendar_key",
]
OF_SETTINGS = "All settings are in one dict, `TIMELINE`. An unknown name is an error at start."
OF_VERBS = (
    "Verbs of `timeline.shortcuts`. Each has a twin for async code, with an `a` in front: `await aemit(…)`. "
    "`using` names a database; without it, it is the database of the entity."
)
# What verbs and the operations that they call name differently, and what means the same for all verbs.
SAME_AS = {"task_ids": "tasks", "task_id": "task", "ref": "entity", "batches": "entities"}
OF_ALL_VERBS = {
    "tasks": "A task or its id, several of them, or a query; all are changed or none.",
    "reason": "Why, in words that people read; 200 characters at most.",
    "actor": "Who decided, as the log shows it; empty for the system itself.",
    "seen": "Task id → its `seq` when it was shown to the person who decides; None: nothing is checked.",
}
# Where more is said about an option or a setting.
MORE = {
    "when": "declaring.md#when",
    "only_if": "declaring.md#whether",
    "atomic": "handlers.md#how",
    "bulk": "handlers.md#many-in-one-call",
    "expires": "declaring.md#when",
    "timeout": "handlers.md#for-how-long",
    "priority": "running.md#whose-turn-it-is",
    "queue": "celery.md#queues",
    "drift": "steps-in-doubt.md#when-the-code-changes-in-the-middle",
    "aside": "alerts.md#beside-the-run",
    "spread": "alerts.md#spread",
    "limit": "limits.md",
    "debounce": "debounce.md",  # of debounce
    "rate": "rates.md",  # of rates
    "was": "names.md#another-name-for-a-task",
    "window": "windows.md",
    "title": "names.md#what-people-call-it",
    "park_above": "brakes.md",
    "tags": "holds.md#what-can-be-held",
    "starts_on": "hosting.md#what-a-save-does",
    "once": "declaring.md#once",
    "key": "declaring.md#once",
    "again": "cron.md#again-for-events-that-came-meanwhile",
    "owner": "policy.md",
    "shadow": "declaring.md#in-shadow",
    "table": "machines.md#the-first-machine",
    "timers": "machine-timers.md#timers",
    "errors": "machine-timers.md#errors-that-are-answers",
    "most_moves": "machine-timers.md#going-round-in-circles",
    "asks": "machine-people.md",
    "mirror": "machine-fields.md",
    "ALERTS": "alerts.md",
    "BASE_URL": "alerts.md",
    "CANCEL_UNDEFINED": "../explanation/changes-unseen.md#another-definition",
    "FIGURES_RETENTION": "figures.md",
    "LEASE": "../explanation/groups.md#when-a-worker-dies",
    "LIVE_STREAMS": "admin-live.md#under-asgi",
    "MAX_GONE": "tenants.md#what-is-not-taken-for-deleted",
    "METRICS_TOKEN": "metrics.md",
    "POLICY": "policy.md",
    "QUEUE_PREFIX": "celery.md#queues",
    "RECORDED_EVENTS": "using.md#an-event-that-no-timeline-knows",
    "RETENTION": "retention.md",
    "SECRET_NAMES": "machine-people.md",
    "SILENCE": "../explanation/groups.md#when-a-worker-dies",
    "SITE": "running.md#a-copy-of-the-database",
    "STRICT_EVENTS": "using.md#an-event-that-no-timeline-knows",
    "SWEEP_INTERVAL": "sweeps.md",
}


def linked(name: str, text: str) -> str:
    """A meaning, with a link to where more is said."""
    more = MORE.get(name)
    if more is None:
        return cell(text)
    address = more.removeprefix("../") if more.startswith("../") else f"how-to/{more}"
    return f"{cell(text)} [More](../{address})"


def cell(text: str) -> str:
    """A text as a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    head = list(head)
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def entry(title: str, call: str, said: Said, *, level: int = 2) -> str:
    """What is said of one function, method or class."""
    parts = [f"{'#' * level} {title}"]
    if call:
        parts.append(f"```text\n{call}\n```")
    parts.append(said.text)
    if said.args:
        parts.append("\n".join(f"- `{name}`: {' '.join(text.split())}" for name, text in said.args.items()))
    if said.returns:
        parts.append(f"**Gives:** {said.returns}")
    if said.raises:
        parts.append(
            "**Raises:**\n\n" + "\n".join(f"- `{name}`: {' '.join(text.split())}" for name, text in said.raises.items())
        )
    return "\n\n".join(part for part in parts if part)


def of_function(function: Any, *, level: int = 2) -> str:
    """What is said of a function or method."""
    name = function.__name__
    return entry(f"`{name}`", call_of(function, name), said_of(function), level=level)


def options() -> str:
    """What a timeline, a task and a machine may declare."""
    from timeline import (
        Debounce,  # of debounce
        Limit,
        Machine,
        Retry,
        Timeline,
        task,
    )
    from timeline.definition.context import Context
    from timeline.definition.handlers import Options
    from timeline.features import FEATURES

    said, defaults = dict(said_of(task).args), vars(Options())
    for declaration in (f"timeline.features.{name}.declaration" for name in FEATURES):
        if find_spec(declaration):
            found = [each for each in vars(import_module(declaration)).values() if is_typeddict(each)]
            said |= {name: text for each in found for name, text in said_of(each).args.items()}
    rows = [
        (f"`{name}`", f"`{default(defaults[name])}`", linked(name, text))
        for name, text in said.items()
        if name in defaults
    ]
    parts = [
        "Everything that a timeline, a task or a machine may declare.",
        "## Of a timeline",
        table(["attribute", "default", "meaning"], map(attribute_row, attributes_of(Timeline))),
        "## Of a task",
        "All except `when` are keyword arguments of `@task`.",
        table(["option", "default", "meaning"], rows),
        "## Of a machine",
        "A machine has the attributes of a timeline as well.",
        table(["attribute", "default", "meaning"], map(attribute_row, attributes_of(Machine))),
        entry("How a task is tried again", call_of(Retry, "Retry"), said_of(Retry)),
        entry("How many may run at once", call_of(Limit, "Limit"), said_of(Limit)),
        entry("One task for a burst", call_of(Debounce, "Debounce"), said_of(Debounce)),  # of debounce
        entry("What a handler finds on `self`", "", said_of(Context)),
    ]
    return page("Options", parts)


def attribute_row(attribute: tuple[str, str, str]) -> tuple[str, str, str]:
    """A line of a table."""
    name, value, text = attribute
    return f"`{name}`", f"`{value}`" if value else "–", linked(name, text)


def times() -> str:
    """The functions that say when."""
    import timeline

    functions = [
        name for name in timeline.__all__ if inspect.isfunction(getattr(timeline, name)) and name not in {"task"}
    ]
    parts = ["What `when`, `starts_on`, `timers` and `window` take. All are imported from `timeline`."]
    parts += [
        entry(f"`{name}`", call_of(getattr(timeline, name), name), said_of(getattr(timeline, name)))
        for name in functions
    ]
    return page("When", parts)


def settings() -> str:
    """The names in ``TIMELINE``."""
    from timeline.conf import Settings

    said = said_of(Settings).args
    rows = [(f"`{each.name}`", setting_default(each), linked(each.name, said[each.name])) for each in fields(Settings)]
    return page(
        "Settings",
        [
            "All settings are in one dict, `TIMELINE`. An unknown name is an error at start.",
            table(["name", "default", "meaning"], rows),
        ],
    )


def setting_default(field: Field[Any]) -> str:
    """Its default as people say it."""
    value = field.default
    if isinstance(value, tuple) and len(value) > 4:
        return ", ".join(f"`{each}`" for each in value[:4]) + ", …"
    return f"`{default(value)}`" if value is not MISSING else "–"


def verbs() -> str:
    """The verbs that begin and end runs, and those that ask."""
    return page("Verbs that begin, end and ask", [OF_VERBS, *verbs_of("runs", "questions")])


def changes() -> str:
    """The verbs that change tasks."""
    return page("Verbs that change tasks", [OF_VERBS, *verbs_of("decisions", "erasure")])


def verbs_of(*modules: str) -> list[str]:
    """What ``timeline.shortcuts`` has of some of its modules."""
    from timeline import shortcuts

    functions = [getattr(shortcuts, name) for name in shortcuts.__all__]
    ours = [each for each in functions if inspect.isfunction(each) and each.__module__.rpartition(".")[2] in modules]
    return [entry(f"`{each.__name__}`", call_of(each, each.__name__), of_verb(each)) for each in ours]


def of_verb(verb: Any) -> Said:
    """What is said of a verb: only what can be given to it, in its own words."""
    said, parameters = said_of(verb), inspect.signature(verb).parameters
    told = {SAME_AS.get(name, name): text for name, text in said.args.items()}
    told |= {name: text for name, text in OF_ALL_VERBS.items() if name in told or name in {"tasks", "actor", "seen"}}
    shown: dict[str, str] = {}
    for name, text in sorted(told.items(), key=lambda pair: "," in pair[0]):
        names = [each for each in name.split(", ") if each in parameters and each != "using" and each not in shown]
        if names and not text.startswith("See `timeline."):
            shown[", ".join(names)] = text
    return said._replace(args=shown)


def commands() -> str:
    """The commands of ``manage.py``."""
    parts = ["Each also takes the options of all commands of Django, such as `--settings`."]
    for package in ("timeline", "timeline.webhooks"):
        folder = import_module(f"{package}.management.commands")
        for name in sorted(module.name for module in pkgutil.iter_modules(folder.__path__)):
            parts.append(command(name, import_module(f"{folder.__name__}.{name}")))
    return page("Commands", parts)


def command(name: str, module: ModuleType) -> str:
    """What a command does, and its options."""
    made = module.Command()
    parser = made.create_parser("manage.py", name)
    common = {
        "help",
        "version",
        "verbosity",
        "settings",
        "pythonpath",
        "traceback",
        "no_color",
        "force_color",
        "skip_checks",
    }
    rows = []
    for each in parser._actions:
        if each.dest in common:
            continue
        call = " ".join(
            [", ".join(each.option_strings) or (each.metavar or each.dest)]
            + ([str(each.metavar or each.dest.upper())] if each.option_strings and each.nargs != 0 else [])
        )
        text = (each.help or "") % {"default": each.default, "prog": name}
        rows.append((f"`{call}`", cell(text)))
    parts = [f"## `{name}`", cell(str(made.help))]
    return "\n\n".join([*parts, table(["option", "meaning"], rows)] if rows else parts)


def signals() -> str:
    """What the package announces."""
    from timeline import signals as module

    source = inspect.getsource(module)
    parts = ["Signals of `timeline.signals`. [Logs and signals](../how-to/logs.md#signals) shows how to use them."]
    for name in module.__all__:
        value = getattr(module, name)
        if is_dataclass(value):
            continue
        comment = re.search(rf"((?:^# .*\n)+)\n*^{name} = Signal\(\)", source, re.MULTILINE)
        text = " ".join(line.removeprefix("# ") for line in comment[1].splitlines()) if comment else ""
        parts.append(f"## `{name}`\n\n{markdown(text)}")
    parts += [
        entry(f"`{name}`", "", said_of(getattr(module, name)))
        for name in module.__all__
        if is_dataclass(getattr(module, name))
    ]
    return page("Signals", parts)


def queries() -> str:
    """Questions asked of rows."""
    from timeline import models

    parts = [
        "Methods of the managers and QuerySets of `timeline.models`. `now` is the time to compare with: `timezone.now()`."
    ]
    for model, names in QUESTIONS.items():
        kind = type(getattr(models, model).objects.all())
        parts.append(f"## `{model}.objects`")
        parts += [
            entry(f"`{name}`", call_of(getattr(kind, name), name), said_of(getattr(kind, name)), level=3)
            for name in names
        ]
    return page("Queries", parts)


def policy() -> str:
    """Who may see and do what."""
    from timeline.policy import Action, TimelinePolicy

    named_by = ", ".join(f"`{action.name}`" for action in Action)
    parts = [
        said_of(TimelinePolicy).text,
        "[Who may see and do what](../how-to/policy.md) shows policies of your own.",
        f"`timeline.policy.Action` has the actions: {named_by}.",
        *(of_function(getattr(TimelinePolicy, name)) for name in POLICY),
    ]
    return page("Methods of a policy", parts)


def errors() -> str:
    """What can be raised."""
    from timeline import exceptions

    parts = ["Errors of `timeline.exceptions`. Each says in its text what to do; what happened is in its attributes."]
    for name in sorted(exceptions.__all__):
        error = getattr(exceptions, name)
        if not error.__doc__:
            continue
        above = next(base.__name__ for base in error.__mro__[1:] if base is not object)
        said = said_of(error.__doc__)
        attributes = [] if "__init__" not in vars(error) else list(inspect.signature(error.__init__).parameters)[1:]
        has = f"\n\nIt has: {', '.join(f'`{each}`' for each in attributes)}." if attributes else ""
        parts.append(f"## `{name}`\n\n{'An' if above[0] in 'AEIOU' else 'A'} `{above}`. {said.text}{has}")
    return page("Errors", parts)


def testing() -> str:
    """What tests use."""
    from timeline import testing as module

    parts = ["Names of `timeline.testing`. [Testing](../how-to/testing.md) shows how to use them."]
    for name in module.__all__:
        value = getattr(module, name)
        if not inspect.isclass(value):
            parts.append(entry(f"`{name}`", call_of(value, name), said_of(value)))
            continue
        parts.append(entry(f"`{name}`", "", said_of(value)))
        for method, function in vars(value).items():
            if method.startswith("_") or not callable(getattr(value, method)):
                continue
            parts.append(entry(f"`{name}.{method}`", call_of(function, method), said_of(function), level=3))
    return page("Testing", parts)


def page(title: str, parts: Iterable[str]) -> str:
    """A page, which says that nobody writes it by hand."""
    return "\n\n".join([f"# {title}", TO_BE_READ, *(part for part in parts if part)]) + "\n"


MADE = {
    "commands": commands,
    "errors": errors,
    "options": options,
    "policy": policy,
    "queries": queries,
    "settings": settings,
    "signals": signals,
    "testing": testing,
    "verbs": verbs,
    "verbs-changing": changes,
    "when": times,
}


def pages() -> dict[str, str]:
    """Each page, by the name of its file."""
    return {f"{name}.md": make() for name, make in MADE.items()}


def main() -> None:
    """Write them."""
    import django

    sys.path.insert(0, str(DOCS.parent))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    for name, text in pages().items():
        (DOCS / "reference" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
