"""The pages that say what can be relied on: each row of their tables names tests, and these are there."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.pages import DOCS, ROOT

PAGES = sorted((DOCS / "explanation").glob("reliability*.md"))
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
TESTS = ROOT / "tests"
NAME = re.compile(r"`([\w/]+\.py)(?:::(\w+))?(?:::(\w+))?`")
ROWS = [
    line for line in TEXT.splitlines() if line.startswith("|") and not line.startswith(("|---", "| what happens |"))
]
NAMED = sorted(set(NAME.findall(TEXT)))


@cache
def names_in(file: str) -> dict[str, set[str]]:
    """Name of a class → names of its tests; those of no class under the empty name."""
    found: dict[str, set[str]] = {"": set()}
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    for node in (part for whole in tree.body for part in (whole.body if isinstance(whole, ast.If) else [whole])):
        if isinstance(node, ast.ClassDef):
            found[node.name] = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            found[""].add(node.name)
    return {name: {test for test in tests if test.startswith("test_")} for name, tests in found.items()}


class TestPages:
    def test_has_a_table_for_each_kind_of_trouble(self):
        assert len(re.findall(r"^\| what happens \|", TEXT, re.MULTILINE)) >= 5
        assert len(ROWS) > 30

    @pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:60])
    def test_names_a_test_for_each_row(self, row):
        cells = row.strip("|").split("|")

        assert len(cells) == 3
        assert NAME.search(cells[2])
        assert NAME.sub("", cells[2]).strip() == ""

    @pytest.mark.parametrize("named", NAMED, ids=lambda named: "::".join(filter(None, named)))
    def test_names_tests_that_are_there(self, named):
        file, kind, test = named

        assert (TESTS / file).name.startswith("test_")
        found = names_in(file)
        assert any(found.values())
        if kind.startswith("test_"):
            assert kind in found[""]
        elif kind:
            assert found[kind]
            assert not test or test in found[kind]
