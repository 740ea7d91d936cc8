"""How long the sentences of a page are, as people read them."""

from __future__ import annotations

import re
from pathlib import Path


def sentences(page: Path) -> list[str]:
    """The sentences of a page: of paragraphs, list items and cells of tables. Code counts as one word."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]+`", "code", text)
    text = re.sub(r"code(?:,?\s+(?:and\s+|or\s+)?code\b)+", "code", text)  # A list of names is read at a glance.
    # Where something new begins: a heading, an item, a row. A line of a paragraph goes on with the one before.
    text = re.sub(r"^(?=#|\s*[-*] |\s*\d+\. |\|)", "\n\n", text, flags=re.MULTILINE)
    parts = [part for block in re.split(r"\n\s*\n", text) for part in (cells(block) if block[:1] == "|" else [block])]
    whole = [" ".join(part.split()) for part in parts]
    return [each for part in whole for each in re.split(r"(?<=[.!?])[\"”)*]*\s+(?=[A-Z*`“\"(]|code)", part) if each]


def cells(row: str) -> list[str]:
    """The cells of a row of a table."""
    return re.split(r"(?<!\\)\|", row.strip().strip("|"))


def words(sentence: str) -> int:
    """How many words a sentence has."""
    return len(re.findall(r"[\w’'/.+:-]*\w[\w’'/.+:-]*", sentence.lstrip("-*# ")))


def items(page: Path) -> list[str]:
    """The items of the lists of a page, each without those below it."""
    text = re.sub(r"^```.*?^```$", "\n", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"^(?=\s*- |\s*\d+\. )|\n\s*\n", text, flags=re.MULTILINE)
    return [part for part in parts if re.match(r"\s*(?:- |\d+\. )", part)]
