"""The pages of the documentation, and the blocks that are in them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """A page's path from the root, as tests and links call it."""
    return page.relative_to(ROOT).as_posix()


def text_of(page: str) -> str:
    """What is in a page, ``how-to/declaring``."""
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def examples(page: Path) -> list[str]:
    """The examples of a page in Python, in order, after those of the page that it says it goes on from."""
    before = re.search(r"The examples go on from those of \[[^]]+\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    return (examples((page.parent / before[1]).resolve()) if before else []) + blocks(page, "python")


@cache
def anchors_of(page: Path) -> set[str]:
    """What links to a page may name after a ``#``: its headings, as GitHub and Sphinx call them, and what has an id."""
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    words = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in words} | set(
        re.findall(r'id="([^"]+)"', text)
    )
