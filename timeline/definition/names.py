"""How names and titles may be written, that nothing is declared twice, and which names are meant by those that nothing has."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from importlib.machinery import ModuleSpec
from inspect import cleandoc
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from django.utils.functional import Promise

from timeline.exceptions import DefinitionError
from timeline.hooks import feature_of_option
from timeline.payloads import as_text
from timeline.suggestions import did_you_mean

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition
    from timeline.timing import When

Problem = tuple[str, str]
MAX_NAME: Final = 50
MAX_KEY: Final = 100  # Characters of what tasks compete for.
MAX_TASK_KEY: Final = 101  # Characters of the column: a timeline, a dot, a task.
ERASED: Final = "timeline.erased"  # The event that says that what others said was erased.
_DIGEST: Final = 32  # Characters.
_KEPT: Final = MAX_KEY - _DIGEST - 1  # Characters of a key that are kept before its digest.
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
LONGEST_TITLE: Final = 100


def key_with(key: str, value: object, *, by: str) -> str:
    """
    A key, with the value of a field if ``by`` names one: 100 characters at most. The end of a longer one is a digest; also of
    one that no database can store, or with a NUL, which SQLite does not find again.
    """
    whole = f"{key}:{value}" if by else key
    plain = whole.encode(errors="replace").decode().replace("\x00", "")
    if len(whole) <= MAX_KEY and plain == whole:
        return whole
    digest = sha256(whole.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"{plain[:_KEPT]}~{digest}"


def start_of_keys(key: str) -> str:
    """What keys with a value begin with, whatever the value is."""
    return f"{key}:"[:_KEPT]


def refuse_keywords(
    method: Callable[..., Any], *, decorator: str, given: Mapping[str, Any], known: Collection[str]
) -> NoReturn:
    """Say in a ``DefinitionError`` which keyword a decorator does not have, and which may be meant."""
    name = next(iter(given))
    feature = feature_of_option(name)
    home = getattr(method, "__qualname__", "").rpartition(".")[0].rpartition(".")[2]
    remedy = did_you_mean(name, known, otherwise=f"Known: {', '.join(sorted(known))}.")
    problem = f"has {name}=, which {decorator} does not take."
    if feature:
        problem = f"has {name}=, an option of the feature {feature!r}, which is not in FEATURES."
        remedy = "Name it there, or leave the option out."
    raise DefinitionError(home or decorator, problem, remedy, getattr(method, "__name__", ""))


def attribute_problems(
    cls: type, declaring: Iterable[type], options: Collection[str]
) -> Iterator[tuple[str, str, Problem]]:
    """Class, name and problem of each attribute that is probably meant as an option. Free are methods and private names."""
    root = cls.__module__.partition(".")[0]
    for home in declaring:
        if home.__module__.partition(".")[0] != root:
            continue
        for name, value in vars(home).items():
            if (
                name in options
                or name.startswith("_")
                or name.isupper()
                or callable(value)
                or hasattr(value, "__get__")
            ):
                continue
            if meant := did_you_mean(name, options):
                remedy = f"{meant} If it is something else, use another name, or put a _ before it."
                yield home.__name__, name, ("is no option, task or step, and is called almost like an option.", remedy)


def keyword_problems(given: Mapping[str, Any], options: Collection[str]) -> Iterator[Problem]:
    """List keywords of a class statement that are probably meant to be ``abstract``, or an option, as (problem, remedy)."""
    for name in given:
        if name in options:
            yield f"has {name}= beside its bases.", f"Write it into the class: {name} = …"
        elif meant := did_you_mean(name, ["abstract"]):
            yield f"has {name}= beside its bases, which means nothing.", meant


def without_quotes(definition: Definition, when: When) -> str:
    """The remedy where a time names a task as if it were a field; empty: there is no task of this name."""
    name = when.field_name
    if name not in definition.tasks:
        return ""
    return f"If the task is meant, write it without quotes: {when.verb}({name}, …). It has to stand above."


def is_name(name: object) -> bool:
    """Whether it is lower-case letters, digits and ``_``, begins with a letter, and is short enough."""
    return isinstance(name, str) and len(name) <= MAX_NAME and _NAME.match(name) is not None


def snake(name: str) -> str:
    """Write the name of a class as that of a timeline: ``FailedPayment`` as ``failed_payment``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def title_problems(title: object) -> Iterator[tuple[str, str]]:
    """List what is wrong with a title, as (problem, remedy). What is translated later is not looked into."""
    if not (isinstance(title, Promise) or _is_line(title)):
        remedy = f"Use text of one line, {LONGEST_TITLE} characters at most, or a lazy translation of it."
        yield f"has title = {title!a:.60}.", remedy


def _is_line(text: object) -> bool:
    return isinstance(text, str) and len(text) <= LONGEST_TITLE and text.isprintable() and text == text.strip()


def first_paragraph(of: Any) -> str:
    """The first paragraph of a docstring of its own, in one line; what stands in double backticks stands there without them."""
    return " ".join(cleandoc(of.__doc__ or "").partition("\n\n")[0].replace("``", "").split())


def read_titles(declared: Any) -> Any:
    """Name → title, with names as plain text; what is no dict stays as it is, and is refused by ``problems_of_titles``."""
    if not isinstance(declared, Mapping):
        return declared
    return {as_text(name) if isinstance(name, str) else name: title for name, title in declared.items()}


def problems_of_titles(definition: Definition) -> Iterator[tuple[str, str]]:
    """List what is wrong with the titles of a timeline, as (problem, remedy)."""
    titles: object = definition.titles
    if not isinstance(titles, Mapping):
        yield f"has titles = {titles!a:.60}.", 'Use a dict: {"payment.configured": _("the customer paid")}.'
        return
    is_own = "titles" in vars(definition.cls)  # What is inherited may name what only its base has.
    guards = [guard for task in definition.tasks.values() for guard in task.guards.values()]
    conditions = {name for guard in guards if (name := getattr(guard, "__name__", ""))}
    known = {*definition.events, *definition.exits.values(), *definition.states, *conditions}
    for name, title in titles.items():
        if is_own and name not in known:
            remedy = "Name an event, a state, an exit or a condition of it; a task has its title in @task(title=…)."
            yield (
                f"has a title for {name!a:.60}, which it does not have.",
                did_you_mean(name, known, otherwise=remedy),
            )
        for problem, remedy in title_problems(title):
            yield f"{problem.rstrip('.')} for {name!r}.", remedy


_declared: Final[dict[tuple[str, str], ModuleSpec]] = {}  # Module and class → the import that declared it.


def check_class_once(cls: type) -> None:
    """
    Refuse a second class of one name in a module (``DefinitionError``): it would take the place of the first.

    Only an import's own lines can declare a name twice. A reload is another import; shells and doctests import nothing.
    """
    module = sys.modules.get(cls.__module__)
    spec = getattr(module, "__spec__", None)
    if module is None or spec is None or not getattr(spec, "_initializing", False):
        return
    frame = _frame_of(cls.__module__, sys._getframe(1))
    if frame is None or frame.f_globals is not vars(module) or frame.f_code.co_name != "<module>":
        return
    key = (cls.__module__, cls.__qualname__)
    if _declared.get(key) is spec:
        problem = f"is declared twice in {cls.__module__}: the second would take the place of the first."
        raise DefinitionError(cls.__name__, problem, "Give one of them another name.")
    _declared[key] = spec


def _frame_of(module: str, frame: FrameType | None) -> FrameType | None:
    """The innermost frame that runs code of the module."""
    while frame is not None and frame.f_globals.get("__name__") != module:
        frame = frame.f_back
    return frame


def check_method_once(method: Callable[..., Any]) -> None:
    """Refuse a second task or step of one name in a class (``DefinitionError``); at the decorator."""
    name, own = getattr(method, "__name__", ""), __name__.partition(".")[0]
    body: FrameType | None = sys._getframe(1)
    while body is not None and str(body.f_globals.get("__name__")).partition(".")[0] == own:
        body = body.f_back
    given = body.f_locals if body is not None else {}
    home, known = str(given.get("__qualname__", "")), given.get(name)
    is_here = home and getattr(method, "__qualname__", "") == f"{home}.{name}"
    if is_here and hasattr(known, "method") and hasattr(known, "options"):
        problem = "is declared twice: the second would take the place of the first."
        raise DefinitionError(home.rpartition(".")[2], problem, "Give one of them another name.", name)
