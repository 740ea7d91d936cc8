"""CHANGELOG.md has the form of keepachangelog.com, and its versions end where the code's begins."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from itertools import pairwise

from packaging.version import Version

import timeline
from tests.packages import ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
VERSIONS = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def released():
    """Each version that is out, and its date."""
    return [
        (Version(version), date.fromisoformat(day)) for version, day in (line.split(" - ") for line in VERSIONS[1:])
    ]


class TestChangelog:
    def test_begins_with_what_is_not_out_yet(self):
        assert VERSIONS[0] == "Unreleased"

    def test_has_versions_with_dates_newest_first(self):
        assert released()
        assert all(newer > older for newer, older in pairwise(version for version, _day in released()))
        assert all(newer >= older for newer, older in pairwise(day for _version, day in released()))

    def test_ends_where_the_version_of_the_code_begins(self):
        """The code's is the newest that is out, or what is to come after it."""
        newest, _day = released()[0]
        ours = Version(timeline.__version__)

        assert ours == newest or (ours > newest and ours.is_devrelease)

    def test_says_of_what_kind_each_change_is(self):
        for part in re.split(r"^## .+$", TEXT, flags=re.MULTILINE)[1:]:
            kinds = re.findall(r"^### (.+)$", part, re.MULTILINE)

            assert kinds == [kind for kind in KINDS if kind in kinds]
            assert "\n- " not in part.partition("### ")[0]

    def test_leads_to_comparisons_only_where_there_is_a_repository(self):
        urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})

        assert bool(re.findall(r"^\[.+\]: ", TEXT, re.MULTILINE)) == ("Repository" in urls)
