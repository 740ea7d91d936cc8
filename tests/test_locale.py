"""The catalogues: complete, compiled as they stand, and found by Django."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import polib
import pytest
from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext, trans_real

from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import ReasonCode, State

LOCALE = Path(settings.BASE_DIR) / "timeline" / "locale"
CATALOGUES = sorted(LOCALE.glob("*/LC_MESSAGES/django.po"))
SOURCES = sorted(LOCALE.parent.rglob("*.py"))
GETTEXT = {
    "_",
    "gettext",
    "gettext_lazy",
    "gettext_noop",
    "ngettext",
    "ngettext_lazy",
    "pgettext",
    "pgettext_lazy",
}  # As makemessages knows them.
TEMPLATES = sorted((LOCALE.parent / "templates" / "admin").rglob("*.html"))
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]?|\{\w+\}")


def key(entry):
    return entry.msgctxt, entry.msgid


def texts(entry):
    return [entry.msgstr, *entry.msgstr_plural.values()]


@pytest.mark.parametrize("file", CATALOGUES, ids=lambda file: file.parts[-3])
class TestCatalogue:
    def test_has_every_text(self, file):
        catalogue = polib.pofile(str(file))

        assert len(catalogue) > 150
        assert [entry.msgid for entry in catalogue if not entry.translated() or entry.fuzzy] == []

    def test_gives_single_words_a_context(self, file):
        """Else another app's catalogue, which comes before ours, may say something else for them."""
        words = [entry.msgid for entry in polib.pofile(str(file)) if re.fullmatch(r"\w+", entry.msgid)]
        alone = {entry.msgid for entry in polib.pofile(str(file)) if not entry.msgctxt and entry.msgid in words}

        assert len(words) > 50
        assert alone == {"Home", "finished"}  # The first means Django's own; the other stands in rows, in English.

    def test_keeps_the_placeholders(self, file):
        for entry in polib.pofile(str(file)):
            several = entry.msgid_plural or entry.msgid  # The text about one may leave out how many.
            for said, text in zip([entry.msgid, entry.msgid, several], texts(entry), strict=False):
                if text:
                    assert set(PLACEHOLDER.findall(text)) == set(PLACEHOLDER.findall(said)), entry.msgid

    def test_is_compiled_as_it_stands(self, file):
        compiled = {key(entry): texts(entry) for entry in polib.mofile(str(file.with_suffix(".mo")))}

        assert compiled == {key(entry): texts(entry) for entry in polib.pofile(str(file))}

    @pytest.mark.needs("xgettext")
    def test_is_of_the_texts_in_the_code(self, file, tmp_path):
        """Extracted anew, nothing is added and nothing is left over."""
        shutil.copytree(LOCALE.parent, tmp_path / "timeline", ignore=shutil.ignore_patterns("__pycache__", "*.mo"))
        command = [sys.executable, "-m", "django", "makemessages", "--locale", file.parts[-3], "--no-location"]
        environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        subprocess.run(command, cwd=tmp_path / "timeline", env=environment, check=True, capture_output=True)

        extracted = polib.pofile(str(tmp_path / file.relative_to(LOCALE.parent.parent)))
        assert {key(entry) for entry in extracted if not entry.obsolete} == {
            key(entry) for entry in polib.pofile(str(file))
        }


@cache
def nodes_of(file):
    """What a file of ours consists of."""
    return [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom | ast.JoinedStr)]


def test_a_german_reads_german():
    with translation.override("de"):
        assert str(State.CANCELLED.label) == "abgesagt"


@pytest.fixture(scope="module")
def foreign_catalogue(tmp_path_factory):
    """A folder with another app's catalogue, which says something else for each of our short texts."""
    ours = polib.pofile(str(LOCALE / "de" / "LC_MESSAGES" / "django.po"))
    theirs = polib.POFile()
    theirs.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Plural-Forms": "nplurals=2; plural=(n != 1);"}
    theirs.extend(
        polib.POEntry(msgid=text, msgstr="FREMD") for text in {entry.msgid for entry in ours if entry.msgctxt}
    )
    path = tmp_path_factory.mktemp("foreign")
    folder = path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    theirs.save_as_mofile(str(folder / "django.mo"))
    return path


@pytest.fixture
def foreign_words(foreign_catalogue, settings, monkeypatch):
    """That catalogue comes before ours."""
    monkeypatch.setattr(trans_real, "_translations", {})
    settings.LOCALE_PATHS = [foreign_catalogue]
    with translation.override("de"):
        assert gettext("active") == "FREMD"
        yield


@pytest.mark.usefixtures("foreign_words")
class TestWordsOfOtherApps:
    @pytest.mark.parametrize("word", [*State, *ReasonCode])
    def test_do_not_name_our_states_and_reasons(self, word):
        assert "FREMD" not in str(word.label)

    def test_do_not_name_states_in_our_errors(self):
        assert "FREMD" not in str(TransitionNotAllowed("active", "redrive", ""))


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_short_words_of_the_admin_have_a_context(file):
    said = re.findall(r"""{% translate (["'])(.+?)\1 (context )?""", file.read_text())

    assert [text for _quote, text, context in said if len(text.split()) < 3 and not context] in ([], ["Home"])


class TestSources:
    """What makemessages would not see is in no catalogue, and nobody would notice."""

    def test_call_gettext_by_a_name_that_is_looked_for(self):
        names = {
            (str(file), name.asname or name.name)
            for file in SOURCES
            for node in nodes_of(file)
            if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation"
            for name in node.names
        }

        assert {name for _file, name in names} > {"gettext"}
        assert [found for found in sorted(names) if found[1] not in GETTEXT | {"override", "get_language"}] == []

    def test_call_it_outside_of_other_texts(self):
        calls = [
            (str(file), call.lineno, getattr(call.func, "id", ""))
            for file in SOURCES
            for text in nodes_of(file)
            if isinstance(text, ast.JoinedStr)
            for call in ast.walk(text)
            if isinstance(call, ast.Call)
        ]

        assert len(calls) > 100
        assert [call for call in calls if call[2] in GETTEXT] == []
