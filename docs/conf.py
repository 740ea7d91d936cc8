"""
The site of the documentation, by Sphinx: ``make docs``.

The pages are plain Markdown, as GitHub shows them. What Sphinx needs beside them is added here: the tree of pages is read from
the index of each folder.
"""

from __future__ import annotations

import re
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

DOCS = Path(__file__).parent
FOLDERS = ("tutorial", "how-to", "reference", "explanation")

project = "timeline"
version = release = re.search(
    r'__version__ = "(.+)"', (DOCS.parent / "timeline" / "__init__.py").read_text(encoding="utf-8")
)[1]
extensions = ["myst_parser"]
exclude_patterns = ["deploy"]
nitpicky = True
show_warning_types = True

myst_heading_anchors = 4
myst_links_external_new_tab = False

html_theme = "furo"
pygments_dark_style = "monokai"
html_title = f"timeline {version}"
html_static_path = ["_static"]
html_css_files = ["timeline.css"]
html_show_sourcelink = html_copy_source = False
html_show_copyright = False


def chapters(folder: str) -> list[tuple[str, list[str]]]:
    """The index of a folder: the heading of each chapter, with its pages."""
    text = (DOCS / folder / "index.md").read_text(encoding="utf-8")
    found = []
    for part in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        title, _, below = part.partition("\n")
        pages = re.findall(r"^(?:- |\d\. |\| )\[[^]]+\]\(([\w-]+)\.md\)", below, re.MULTILINE)
        found.append((title, [f"{folder}/{page}" for page in pages]))
    return [(title, pages) for title, pages in found if pages]


def add_tree(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the tree of all pages below the first one, where it is not shown, but beside each page."""
    if page != "index":
        return
    for folder in FOLDERS:
        first = f"{folder}/index"
        app.env.note_dependency(str(DOCS / f"{first}.md"))
        for title, pages in chapters(folder):
            entries = "\n".join(dict.fromkeys([*([first] if first else []), *pages]))
            part = folder.capitalize()
            caption = title if title == part else f"{part}: {title.lower()}"
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"
            first = ""


def setup(app: Sphinx) -> None:
    """Connect it."""
    app.add_lexer("procfile", TextLexer)
    app.connect("source-read", add_tree)
