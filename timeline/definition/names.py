"""How names and titles may be written; and keywords and attributes that nothing has, with those that are meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Final, NoReturn

from django.utils.functional import Promise

from timeline.exceptions import DefinitionError
from timeline.hooks import feature_of_option
from timeline.suggestions import did_you_mean

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition
    from timeline.timing import When


Problem = tuple[str, str]
MAX_NAME: Final = 50
MAX_KEY: Final = 100  # Characters of what tasks compete for.
MAX_TASK_KEY: Final = 101  # Characters of the column: a timeline, a dot, a task.
ERASED: Final = "timeline.erased"  # The event that says that what others said was erased.
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
LONGEST_TITLE: Final = 100


def key_with(key: str, value: object, *, by: str) -> str:
    """
    A key, with the value of a field if ``by`` names one: 100 characters at most. The end of a longer one, or of one with a NUL,
    which SQLite does not find again, is a digest.
    """
    whole = f"{key}:{value}" if by else key
    if len(whole) <= MAX_KEY and "\x00" not in whole:
        return whole
    digest = sha256(whole.encode(errors="surrogatepass")).hexdigest()[:32]
    begins = whole.replace("\x00", "")[: MAX_KEY - 33]
    return f"{begins}~{digest}"


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
