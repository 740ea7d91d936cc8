"""
The suite without a feature: in a copy of the tree that has neither the feature nor its tests, the others still pass.

From a copy of what git lists in a temporary folder goes:

- ``timeline/features/<feature>`` and ``tests/features/<feature>``; of an app beside the package, ``timeline/<app>`` and
  ``tests/<app>``;
- its name in ``FEATURES`` of ``timeline/features/__init__.py``;
- whatever a line begins that ends with the mark ``# of <feature>``: an import, an argument, an item of a list, a function; of
  the first line of a file, the file.

Then it says which imports and undefined names are left, and asks the tests there, on tables that are made from the models. The
feature ``none`` takes nothing away.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from benchmarks.belongs import BESIDE

ROOT: Final = Path(__file__).resolve().parent.parent
FEATURES: Final = Path("timeline/features")
TESTS: Final = Path("tests/features")
LIST: Final = FEATURES / "__init__.py"

# What is not asked, below ``tests``, and why.
LEFT_OUT: Final = {
    "api/test_documents.py::TestSchema::test_is_answered_as_it_is_written": "asks docs/openapi.yaml",
    "api/test_documents.py::TestSchema::test_is_the_one_in_the_docs": "asks docs/openapi.yaml",
    "api/test_roles.py::TestMatrix::test_knows_each_route_of_the_schema": "asks docs/openapi.yaml",
    "benchmarks": "figures about the whole",
    "checks/test_register.py::TestRegister::test_lets_migrate_go_on_where_it_only_warns": "there are no migrations",
    "engine/test_attempting.py::TestTheContext::test_has_no_event_where_that_is_not_there": "models refuse such a row",
    "faults": "plants faults in all features, and takes long",
    "foreign": "sites and suites of others, on all of the package",
    "postgresql/test_storage.py::TestVacuum": "migrations set it",
    "project/test_booking.py": "a story of the demo, which uses all features",
    "project/test_demo.py": "stories of the demo",
    "reading/test_explaining.py::TestACauseThatIsNotThere": "models refuse such a row",
    "store/test_triggers.py::TestFunctionsThatStatementsCall::test_are_no_reason_not_to_migrate": "there are no migrations",
    "test_asking.py": "names files of all features",
    "test_changelog.py": "texts about the whole",
    "test_docs.py": "runs the documentation of all features",
    "test_hooks.py": "names features that are taken out",
    "test_installed.py": "builds the package",
    "test_locale.py": "translations of all features",
    "test_planted.py": "plants faults in all features",
    "test_prose.py": "texts about the whole",
    "test_public.py": "public names of all features",
    "test_reasons.py::TestSentences::test_are_there_for_every_code_that_is_not_others_to_explain": "codes of all features",
    "test_release.py": "builds the package",
    "test_reliability.py": "a page that names tests of all features",
    "test_tutorial.py": "does the lessons word for word",
    "upgrading": "migrates: here tables are made from the models",
}


def main(arguments: list[str] | None = None) -> int:
    """Print what fails without a feature; 0 if nothing does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=features_in, help="One, or several with commas between: limits,fan_out")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="A new folder for the copy, which is left there.")
    given, of_pytest = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory(prefix="without-") as folder:
        tree = (given.keep or Path(folder) / "tree").resolve()
        copy(tree)
        for feature in given.features:
            take_out(feature, tree)
        problems = [*left(given.features, tree), *asked(tree, given.database, of_pytest)]
    *failed, passed = problems
    print("\n".join([*failed, f"Without {', '.join(given.features) or 'nothing'}: {passed}"]))
    return 1 if failed else 0


def known() -> list[str]:
    """The features that have a folder, and the apps beside the package."""
    return sorted([*BESIDE, *(path.parent.name for path in (ROOT / FEATURES).glob("*/__init__.py"))])


def folders_of(feature: str) -> tuple[Path, Path]:
    """Where the code and the tests are of a feature, or of an app."""
    if feature in BESIDE:
        return FEATURES.parent / feature, TESTS.parent / feature
    return FEATURES / feature, TESTS / feature


def features_in(text: str) -> list[str]:
    """The features that somebody names; raises what argparse shows."""
    names = [] if text == "none" else text.split(",")
    if unknown := set(names) - set(known()):
        raise argparse.ArgumentTypeError(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(known())}")
    return names


def copy(tree: Path) -> None:
    """Copy what git lists, as it is in the working tree."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():  # Else it is deleted, and git does not know that yet.
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)


def take_out(feature: str, tree: Path) -> None:
    """Delete a feature's folders in a tree, its name in the list, and what is marked as its own."""
    for folder in folders_of(feature):
        shutil.rmtree(tree / folder, ignore_errors=True)
    path = tree / LIST
    path.write_text(unlisted(path.read_text(encoding="utf-8"), feature), encoding="utf-8")
    for path in tree.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if text.partition("\n")[0].endswith(f"# of {feature}"):
            path.unlink()
        elif f"# of {feature}" in text:
            path.write_text(unmarked(text, feature), encoding="utf-8")


def unlisted(text: str, feature: str) -> str:
    """The text of a module without a name in the tuple that it assigns to ``FEATURES``."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "FEATURES":
            assert node.value is not None  # noqa: S101 (of the kind that has one)
            names = ast.literal_eval(node.value)
            segment = ast.get_source_segment(text, node.value) or ""
            return text.replace(segment, repr(tuple(name for name in names if name != feature)))
    return text


def unmarked(text: str, feature: str) -> str:
    """The text of a module without what is begun by a line that ends with a feature's mark."""
    lines = text.splitlines(keepends=True)
    marks = {number for number, line in enumerate(lines, 1) if re.search(rf"# of {feature}$", line.rstrip())}
    gone = set(marks)
    for node in ast.walk(ast.parse(text)):
        begun, last = begun_by(node)
        if not marks.isdisjoint(begun):
            gone.update(range(min(begun), last + 1))
    return "".join(line for number, line in enumerate(lines, 1) if number not in gone)


def begun_by(node: ast.AST) -> tuple[set[int], int]:
    """The lines that something begins with, of which any can be marked, and its last line. With what is decorated
    begin its decorators."""
    if isinstance(node, ast.match_case):
        return {node.pattern.lineno}, node.body[-1].end_lineno or node.pattern.lineno
    if not isinstance(first := getattr(node, "lineno", None), int):
        return set(), 0
    decorators = getattr(node, "decorator_list", [])
    return {first, *(decorator.lineno for decorator in decorators)}, getattr(node, "end_lineno", None) or first


def left(features: Collection[str], tree: Path) -> Iterator[str]:
    """What still imports features that are gone, and names that nobody defines any more."""
    gone = {".".join(folder.parts) for feature in features for folder in folders_of(feature)}
    for path in read(tree):
        try:
            module = ast.parse(path.read_text(encoding="utf-8"))
        except SyntaxError as error:
            yield f"{path.relative_to(tree)}:{error.lineno}: {error.msg}, without what is marked"
            continue
        for node in at_run_time(module):
            if isinstance(node, ast.ImportFrom) and node.module:
                asked = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                asked = {alias.name for alias in node.names}
            else:
                continue
            if any(f"{name}.".startswith(f"{one}.") for name in asked for one in gone):
                yield f"{path.relative_to(tree)}:{node.lineno}: still imports a feature that is gone"
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--select",
        "F821,F822",
        "--output-format",
        "concise",
    ]
    found = _run([*command, *map(str, read(tree))], tree, dict(os.environ)).stdout
    yield from (line for line in found.splitlines() if ": F82" in line)


def at_run_time(module: ast.Module) -> Iterator[ast.AST]:
    """All that is in a module but for what only names types."""
    nodes: list[ast.AST] = [module]
    while nodes:
        node = nodes.pop()
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            yield node
            nodes.extend(ast.iter_child_nodes(node))


def read(tree: Path) -> list[Path]:
    """The files of the package, the site and the tests that are asked."""
    left_out = [tree / "tests" / place for place in LEFT_OUT]
    found = [path for room in ("project", "tests", "timeline") for path in sorted((tree / room).rglob("*.py"))]
    return [path for path in found if not any(path == place or place in path.parents for place in left_out)]


def asked(tree: Path, database: str, arguments: list[str]) -> Iterator[str]:
    """Ask the tests of a tree; which of them fail, and in the last line how many passed."""
    environment = {name: value for name, value in os.environ.items() if name != "TEST_DATABASE_URL"} | {
        "PYTHONPATH": str(tree),
        "TEST_DB": database,
        "SIZE": os.environ.get("SIZE", "test"),
        "COLUMNS": "200",  # Of which pytest cuts off why a test failed.
    }
    where = "from importlib.util import find_spec; print(find_spec('timeline').origin)"
    found = _run([sys.executable, "-c", where], tree, environment).stdout.strip()
    if found != str(tree / "timeline/__init__.py"):
        sys.exit(f"The package is {found}, not the copy.")
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE", "--no-migrations", "-p", "no:cacheprovider"]
    command += [f"--{'deselect' if '::' in place else 'ignore'}=tests/{place}" for place in LEFT_OUT]
    ended = _run([*command, *arguments], tree, environment)
    lines = ended.stdout.splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    if ended.returncode and not failed:
        failed = [*lines, *ended.stderr.splitlines()][-30:]
    yield from failed
    yield lines[-1] if lines else f"pytest ended with {ended.returncode}."


def _run(command: list[str], tree: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=tree, env=environment, check=False, capture_output=True, text=True)  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
