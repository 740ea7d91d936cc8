"""What the files of the suite say of answers: paths into them, and what is expected there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

MISSING: Final = object()
TOLERANCE: Final = 0.5  # Of numbers that are given as about so much.
_REFERENCE: Final = re.compile(r"\{\{steps\.([^.}]+)\.response\.body\.?([^}]*)\}\}")
_PART: Final = re.compile(r"\[(\d+|\*)\]|\[\?\(@\.(\w+)==['\"]([^'\"]*)['\"]\)\]|\.?([^.\[]+)")
_PATTERNS: Final = {
    "string:uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "string:uuidv7": r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "string:datetime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)",
    "string:nonempty": r"(?s).+",
    "string:non_empty": r"(?s).+",
}
_TYPES: Final = {"string": str, "number": (int, float), "boolean": bool, "array": list, "object": dict}


def at(path: str, body: Any) -> Any:
    """What is at a path such as ``$.jobs[0].args``; ``MISSING`` if there is nothing."""
    found = body
    parts = list(_PART.finditer(path.removeprefix("$").removeprefix(".")))
    for number, part in enumerate(parts):
        index, key, value, name = part.groups()
        if index == "*":
            rest = "".join(each.group() for each in parts[number + 1 :]).removeprefix(".")
            inner = [at(rest, each) if rest else each for each in found] if isinstance(found, list) else []
            return [each for each in inner if each is not MISSING]
        if name is not None:
            found = found.get(name, MISSING) if isinstance(found, dict) else MISSING
        elif key is not None:
            alike = [each for each in found if str(each.get(key)) == value] if isinstance(found, list) else []
            found = alike[0] if alike else MISSING
        else:
            found = found[int(index)] if isinstance(found, list) and int(index) < len(found) else MISSING
        if found is MISSING:
            return MISSING
    return found


def filled(given: Any, answers: Mapping[str, Any]) -> Any:
    """The same with what ``{{steps.….response.body.…}}`` refers to, in texts at any depth."""
    if isinstance(given, dict):
        return {filled(name, answers): filled(value, answers) for name, value in given.items()}
    if isinstance(given, list):
        return [filled(value, answers) for value in given]
    if not isinstance(given, str):
        return given
    if whole := _REFERENCE.fullmatch(given):
        found = at(whole[2], answers.get(whole[1]))
        return given if found is MISSING else found
    return _REFERENCE.sub(lambda part: str(at(part[2], answers.get(part[1]))), given)


def problems(expected: Any, found: Any, where: str = "") -> Iterator[str]:
    """What is not as expected there; nothing if all is."""
    if not _holds(expected, found):
        shown = "nothing" if found is MISSING else repr(found)
        yield f"{where}: expected {expected!r}, found {shown:.200}"


def _holds(expected: Any, found: Any) -> bool:
    if isinstance(expected, str):
        return _fits(expected, found)
    if found is MISSING:
        return expected is None or (isinstance(expected, dict) and expected.get("$exists") is False)
    if isinstance(expected, bool) or expected is None:
        return found is expected
    if isinstance(expected, int | float):
        return isinstance(found, int | float) and not isinstance(found, bool) and abs(found - expected) < 1e-9
    if isinstance(expected, list):
        both = isinstance(found, list) and len(found) == len(expected)
        return both and all(map(_holds, expected, found))
    return _fits_object(expected, found)


def _fits_object(expected: Mapping[str, Any], found: Any) -> bool:
    known = [name for name in expected if name in _OPERATORS]
    if known:
        return all(_OPERATORS[name](expected[name], found) for name in known)
    if unknown := [name for name in expected if name.startswith("$")]:
        raise AssertionError(f"The suite has an operator that is not known here: {unknown[0]}")
    return isinstance(found, dict) and all(_holds(value, found.get(name, MISSING)) for name, value in expected.items())


def _fits_size(expected: Any, found: Any) -> bool:
    least = expected["$gte"] if isinstance(expected, dict) else expected
    most = float("inf") if isinstance(expected, dict) else expected
    return isinstance(found, list) and least <= len(found) <= most


_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$exists": lambda wanted, found: (found is not None) is wanted,
    "$type": lambda wanted, found: (
        isinstance(found, _TYPES[wanted]) and (wanted == "boolean") == isinstance(found, bool)
    ),
    "$match": lambda wanted, found: isinstance(found, str) and re.search(wanted, found) is not None,
    "$in": lambda wanted, found: any(_holds(each, found) for each in wanted),
    "$or": lambda wanted, found: any(_holds(each, found) for each in wanted),
    "$size": _fits_size,
    "range": lambda wanted, found: wanted["min"] <= found <= wanted["max"],
}


def _fits(expected: str, found: Any) -> bool:
    """Whether a value is as a word of the suite says, or the text itself."""
    if expected == "any" or (expected == "absent" and found is None):
        return True
    if expected in ("absent", "exists"):
        return (found in (MISSING, None)) == (expected == "absent")
    if found is MISSING:
        return False
    for pattern, fits in _WORDS:
        if word := re.fullmatch(pattern, expected):
            return fits(found, *word.groups())
    return bool(found == expected)


def _is_text(pattern: str, found: Any) -> bool:
    return isinstance(found, str) and re.fullmatch(pattern, found) is not None


def _is_number(found: Any) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool)


def _is_about(found: Any, text: str) -> bool:
    return _is_number(found) and abs(found - float(text)) <= float(text) * TOLERANCE


def _fits_length(said: str, length: int) -> bool:
    if said in ("nonempty", "empty"):
        return (length > 0) == (said == "nonempty")
    words = re.fullmatch(r"(min_length|min|length)[:(](\d+)\)?", said)
    assert words, said
    return length == int(words[2]) if words[1] == "length" else length >= int(words[2])


def _fits_number(said: str, found: float) -> bool:
    if not _is_number(found):
        return False
    if bounds := re.fullmatch(r"range\((-?[\d.]+),\s*(-?[\d.]+)\)", said):
        return float(bounds[1]) <= found <= float(bounds[2])
    return found > 0 if said == "positive" else found >= 0


# A word, and whether a value is as it says: given that and the groups of the word.
_WORDS: Final[list[tuple[str, Callable[..., bool]]]] = [
    *((re.escape(word), partial(_is_text, pattern)) for word, pattern in _PATTERNS.items()),
    (r"array:(.+)", lambda found, said: isinstance(found, list) and _fits_length(said, len(found))),
    (r"number:(.+)", lambda found, said: _fits_number(said, found)),
    (r"one_of:(.+)", lambda found, said: str(found) in said.split(",")),
    (r"contains:(.+)", lambda found, said: isinstance(found, list) and said in map(str, found)),
    (r"not_contains:(.+)", lambda found, said: isinstance(found, list) and said not in map(str, found)),
    (r"string:contains:(.+)", lambda found, said: isinstance(found, str) and said in found),
    (r"string:pattern\((.*)\)", lambda found, said: isinstance(found, str) and re.search(said, found) is not None),
    (r"~(\d+(?:\.\d+)?)", _is_about),
]
