"""Planted faults find what they change: of some, only a sample is planted each time."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest
from django.conf import settings

from tests.faults.life import faults as of_lives
from tests.faults.planted import patches, surgery
from tests.faults.races import faults as of_races

PACKAGE = Path(settings.BASE_DIR) / "timeline"
IN_FILES = [change for fault in patches.FAULTS for change in fault.changes]
IN_CODE = [
    change
    for module in (of_lives, of_races)
    for faults in vars(module).values()
    if isinstance(faults, list)
    for fault in faults
    for change in getattr(fault, "changes", ())
]


def texts_of(where: str) -> list[str]:
    """Of a function, named as ``operations.move:move``; or of a verb's statement on each database."""
    module, is_function, name = where.partition(":")
    if not is_function:
        return [path.read_text(encoding="utf-8") for path in (PACKAGE / "sql").glob(f"{where}.*sql")]
    found = import_module(f"timeline.{module}")
    for part in name.split("."):
        found = getattr(found, part)
    return [inspect.getsource(inspect.unwrap(found))]


class TestChange:
    def test_is_looked_at(self):
        assert len(IN_FILES) > 10
        assert len(IN_CODE) > 10
        assert {type(change) for change in IN_CODE} == {surgery.Change}

    @pytest.mark.parametrize("change", IN_FILES, ids=lambda change: f"{change.file}-{change.old[:30]}")
    def test_is_of_a_text_that_a_file_has_once(self, change):
        assert (PACKAGE / change.file).read_text(encoding="utf-8").count(change.old) == 1

    @pytest.mark.parametrize("change", IN_CODE, ids=lambda change: f"{change.where}-{change.old[:30]}")
    def test_is_of_a_text_that_is_there_once(self, change):
        assert max(text.count(change.old) for text in texts_of(change.where)) == 1
