"""Pages are read at first sight: sentences and items are short."""

from __future__ import annotations

import pytest

from tests.pages import DOCS, PAGES, README, name_of
from tests.prose import items, sentences, words

LONGEST, LONG = 30, 25  # Words of a sentence: none has more than the one, and few more than the other.
FEW = 2  # On a page.
ITEM = 80  # Words of an item of a list.
# What is written from code keeps to the first; what is written from figures is not in sentences of this kind.
FROM_CODE = [page for page in PAGES if "docs/generate.py" in page.read_text(encoding="utf-8")]
MADE = [*FROM_CODE, *(DOCS / "explanation").glob("benchmarks*.md"), DOCS / "reference" / "changelog.md"]
WRITTEN = [page for page in PAGES if page not in MADE]
# Those that somebody reads while doing something else.
AT_WORK = [page for page in WRITTEN if page == README or page.parent.name in {"docs", "how-to", "tutorial"}]


class TestSentences:
    @pytest.mark.parametrize("page", [*WRITTEN, *FROM_CODE], ids=name_of)
    def test_are_read_in_one_breath(self, page):
        assert [each for each in sentences(page) if words(each) > LONGEST] == []

    @pytest.mark.parametrize("page", AT_WORK, ids=name_of)
    def test_are_shorter_where_one_is_at_work(self, page):
        assert len([each for each in sentences(page) if words(each) > LONG]) <= FEW

    def test_are_found(self, tmp_path):
        page = tmp_path / "page.md"
        page.write_text(
            "# A title\n\nOne is here. Two `code(a, b)` are [over\nthere](x.md), said e.g. so.\n\n- An item.\n\n"
            "| a cell | another |\n\n```python\nnot = 1\n```\n",
            encoding="utf-8",
        )

        found = sentences(page)
        assert found == [
            "# A title",
            "One is here.",
            "Two code are over there, said e.g. so.",
            "- An item.",
            "a cell",
            "another",
        ]
        assert [words(each) for each in found] == [2, 3, 8, 2, 2, 1]


class TestItems:
    @pytest.mark.parametrize("page", WRITTEN, ids=name_of)
    def test_are_no_pages(self, page):
        assert [item for item in items(page) if len(item.split()) > ITEM] == []

    def test_are_found_without_those_below(self, tmp_path):
        page = tmp_path / "page.md"
        page.write_text("Words.\n\n- One\n  goes on.\n  - Below.\n- Two.\n\nMore words.\n", encoding="utf-8")

        assert [" ".join(item.split()) for item in items(page)] == ["- One goes on.", "- Below.", "- Two."]
