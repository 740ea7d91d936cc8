"""
Where features stand: how many files of the package name each one outside of its own folder, and how far the package is spread.

A file names a feature if it imports something of its folder, or if a name in its code, or a text that is a name and nothing
else (``"limit_key"``), is one of the feature's words below. Comments and docstrings are not counted. A file is the feature's
own if it lies in the feature's folder, ``timeline/features/<feature>``, or is its command, which Django looks for elsewhere
(``timeline_hold``); or, as long as there is no folder, if its own name is one of the words.

All files are counted. Beside it stands where they are: *roots* name what people import, whatever feature it is of; files of
*other features*, which build on each other as ``docs/explanation/inside.md`` says; and the rest, *core and faces*.

``--detail limits`` lists the files.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

# Apps beside the package, each with a folder, tables or a library of its own: they use what anybody may use. What they name is
# not counted; how large they are is said apart.
BESIDE: Final = ("django_tasks", "ojs", "otel")
ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "timeline"

# Feature → what its names look like. Words that are used for other things as well (limit, slots, place, state, every,
# RecursionError) are left out: threads and deliveries are waiting, a task moves, a drawing has edges, machine time is a clock.
WORDS: Final = {
    "limits": r"limit_keys?|Limit|limits|Limited\w*|limited\w*|limiting|giv\w+_up_places?",
    "steps": r"[sS]teps?|\w+_steps?|step_\w+|Step[A-Z]\w*|stepping",
    "holds": r"[hH]olds?|\w+_holds?|hold_\w+|held_in_words|holding|[bB]rakes?|Brake\w+|braking|park|parking|parked|Admission",
    "waits": r"waits|wait_for|\w*_waits?|awaited|awaiting|Awaited|approvals?|Approval\w*|approving|approve|Wait",
    "recurring": r"recur(?!sion)\w*|Recur(?!sion)\w*|daily|hourly|weekly|monthly|cron|Slots|on_clock|schedules",
    "fan_out": r"fan\w*|Fan\w*|each_of|EachOf",
    "bulk_actions": r"bulk_action\w*|BulkAction\w*|act\w*_in_bulk|bulk_forms",
    "machines": r"\w*[mM]achines?|machines?_(?!time|now)\w+|\w+_machines?|STAY|BACK|IGNORE|StateField|state_field|Edge",
    "rates": r"Rate|RateLimited|RateKey|RateOptions|rate_of",
    "debounce": r"\w*[dD]ebounce\w*|bursts?|Burst\w*",
    "on_failure": r"on_failure|FailureOptions",
}

# Whose, and name: words of features that are somebody else's there. What an object of a library has by this name, and an
# attribute of HTML. ``Limit(on_discard="hold")`` keeps a place, and nothing is on hold.
ELSEWHERE: Final = {("asyncio", "wait_for"), ("_woken", "wait_for"), ("app", "steps"), ("attrs", "step")}
KEEPS_A_PLACE: Final = {"features/limits/declaration.py": "hold", "features/limits/rules.py": "hold"}

# What people import, and Django loads: they name each feature that has something for them.
ROOTS: Final = (
    *("__init__.py", "definition/__init__.py", "definition/options.py", "features/__init__.py", "models/__init__.py"),
    *("shortcuts/__init__.py", "timing/__init__.py"),
)


def files() -> list[Path]:
    """The package's files, but for migrations and the apps beside it."""
    return [path for path in all_files() if path.relative_to(PACKAGE).parts[0] not in BESIDE]


def all_files() -> list[Path]:
    """The same with the apps beside it."""
    return sorted(path for path in PACKAGE.rglob("*.py") if "migrations" not in path.parts)


@cache
def tree_of(path: Path) -> ast.Module:
    """The code of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def names(path: Path) -> Iterator[str]:
    """Each name in the code of a file, and each text that is a name, but for those of others."""
    for node in _ours(tree_of(path)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.ImportFrom(module=str(module)):
                yield from module.split(".")
            case ast.Constant(value=str(text)) if text.isidentifier():
                yield from text.split("__")


def _ours(tree: ast.Module) -> Iterator[ast.AST]:
    others = {id(each) for node in ast.walk(tree) for each in _of_others(node)}
    return (node for node in ast.walk(tree) if id(node) not in others)


def _of_others(node: ast.AST) -> Iterator[ast.AST]:
    """What stands for something of a library, or of HTML, below a piece of code."""
    match node:
        case ast.Attribute(attr=name, value=ast.Name(id=whose) | ast.Attribute(attr=whose)) if (
            whose,
            name,
        ) in ELSEWHERE:
            yield node
        case ast.keyword(arg=str(whose), value=ast.Dict(keys=keys)):
            for key in keys:
                if isinstance(key, ast.Constant) and (whose, key.value) in ELSEWHERE:
                    yield key


def named(feature: str) -> list[Path]:
    """The files that name a feature, and are not its own."""
    folder, words = PACKAGE / "features" / feature, re.compile(WORDS[feature])
    known, found = modules(), []
    importing = {known[name] for name in _importing(f"timeline.features.{feature}")}
    for path in files():
        own = folder in path.parents if folder.exists() else words.fullmatch(path.stem.lstrip("_")) is not None
        command = path.stem.removeprefix("timeline_") if path.parent.name == "commands" else ""
        own = own or command == feature or words.fullmatch(command) is not None
        place = path.relative_to(PACKAGE).as_posix()
        said = (name for name in names(path) if name != KEEPS_A_PLACE.get(place))
        if not own and (path in importing or any(words.fullmatch(name.lstrip("_")) for name in said)):
            found.append(path)
    return found


def parted(paths: list[Path]) -> tuple[int, int, int]:
    """How many of these files are roots, how many are of other features, and how many of the core and the faces."""
    places = [path.relative_to(PACKAGE).as_posix() for path in paths]
    roots = sum(place in ROOTS for place in places)
    features = sum(place.startswith("features/") and place not in ROOTS for place in places)
    return roots, features, len(places) - roots - features


def _importing(folder: str) -> set[str]:
    """The modules that import something of a feature's folder."""
    return {name for module, those in importers().items() if f"{module}.".startswith(f"{folder}.") for name in those}


@cache
def modules() -> dict[str, Path]:
    """The package's modules by their dotted names."""
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in files()}


@cache
def importers() -> dict[str, set[str]]:
    """Module → the modules of the package that import it, or something of it."""
    known, found = modules(), defaultdict(set)
    for name, path in known.items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                asked = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                asked = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            for other in asked:
                if other in known:
                    found[other].add(name)
    return found


def couplings() -> dict[str, set[str]]:
    """Feature → the modules outside of all features that import something of it."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, those in importers().items():
        if module.startswith("timeline.features."):
            found[module.split(".")[2]] |= {name for name in those if not name.startswith("timeline.features.")}
    return found


def repeated(names: Iterator[str]) -> int:
    """How many names are there more than once."""
    return sum(1 for times in Counter(names).values() if times > 1)


def classes() -> Iterator[str]:
    """The names of all classes of the package, but for those that Django asks for by name."""
    for path in files():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and node.name != "Command":
                yield node.name


def spread() -> dict[str, int]:
    """Figure → how many."""
    stems = [path.stem for path in files() if path.stem != "__init__"]
    return {
        "Python files": len(files()),
        "lines": sum(map(_lines, files())),
        "modules with a single importer": sum(1 for those in importers().values() if len(those) == 1),
        "modules named …ing": sum(1 for stem in stems if stem.endswith("ing")),
        "class names that repeat": repeated(classes()),
        "file names that repeat": repeated(iter(stems)),
        f"Python files of {', '.join(BESIDE)}": len(beside := set(all_files()) - set(files())),
        "their lines": sum(map(_lines, beside)),
    }


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def main() -> None:
    """Print both tables, or the files that name a feature."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--detail", choices=WORDS, help="List the files outside of its folder that name this feature.")
    if feature := parser.parse_args().detail:
        for path in named(feature):
            print(path.relative_to(ROOT))
        return
    print("| feature | files outside its folder that name it | roots | other features | core and faces |")
    print("|---|--:|--:|--:|--:|")
    for feature in WORDS:
        found = named(feature)
        print(f"| {feature} | {len(found)} | {' | '.join(map(str, parted(found)))} |")
    print("\n| feature | modules outside of features that import it |\n|---|--:|")
    for feature, those in sorted(couplings().items()):
        print(f"| {feature} | {len(those)} |")
    print("\n| the package | |\n|---|--:|")
    for figure, many in spread().items():
        print(f"| {figure} | {many:,} |")


if __name__ == "__main__":
    main()
