"""The suite without a feature: what is taken out of a copy of the tree, and what is said of what is left."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError

import pytest

from benchmarks.without import (
    FEATURES,
    LEFT_OUT,
    LIST,
    ROOT,
    TESTS,
    copy,
    features_in,
    known,
    left,
    take_out,
    unlisted,
    unmarked,
)

# What ``make without-some`` takes out.
TAKEN_OUT = re.search(r"without FEATURE=(\S+,\S+)", (ROOT / "Makefile").read_text()).group(1).split(",")

MARKED = '''\
"""Things of several features."""

from timeline import Limit, task  # of limits
from timeline import (
    Limit,  # of limits
    task,
)

NAMES = [
    "Limit",  # of limits
    "task",
    call(  # of limits
        1,
    ),
]


@decorated(
    1,
)
def first():  # of limits
    return 1


@decorated  # of limits
def second():
    return 2


def third(
    a,
    limit,  # of limits
):
    if limit:  # of limits
        return 3
    return 4  # of other


# A sentence about what is a matter
# of limits
'''
LEFT = '''\
"""Things of several features."""

from timeline import (
    task,
)

NAMES = [
    "task",
]






def third(
    a,
):
    return 4  # of other


# A sentence about what is a matter
'''


@pytest.fixture
def tree(tmp_path):
    """A tree with two features, one of which is named by a module, and has a command."""
    for feature in ("limits", "holds"):
        for folder in (FEATURES, TESTS):
            (tmp_path / folder / feature).mkdir(parents=True)
            (tmp_path / folder / feature / "__init__.py").touch()
    (tmp_path / LIST).write_text('from typing import Final\n\nFEATURES: Final = (\n    "holds",\n    "limits",\n)\n')
    (tmp_path / "timeline/command.py").write_text(
        '"""Shows limits."""  # of limits\n\nimport timeline.features.limits\n'
    )
    return tmp_path


def said(tree, text):
    (tree / "timeline/named.py").write_text(text)
    return list(left(["limits"], tree))


class TestUnmarked:
    def test_leaves_out_whatever_a_marked_line_begins(self):
        assert unmarked(
            MARKED.replace("@decorated(\n    1,\n)\ndef first():  # of limits\n    return 1\n", ""), "limits"
        ) == (LEFT.replace("@decorated(\n    1,\n)\n\n\n", "\n\n"))

    def test_of_other_features_stay(self):
        assert unmarked(MARKED, "holds") == MARKED


class TestUnlisted:
    @pytest.mark.parametrize(
        ("names", "others"),
        [('("limits", "holds")', ("holds",)), ('("holds", "limits")', ("holds",)), ('("limits",)', ())],
    )
    def test_has_a_tuple_of_the_others(self, names, others):
        assert unlisted(f"FEATURES: Final = {names}\n", "limits") == f"FEATURES: Final = {others!r}\n"


class TestTakeOut:
    def test_deletes_its_folders_its_name_and_its_files(self, tree):
        take_out("limits", tree)

        found = {path.relative_to(tree).as_posix() for path in tree.rglob("*.py")}
        assert found == {str(LIST), "timeline/features/holds/__init__.py", "tests/features/holds/__init__.py"}
        assert (tree / LIST).read_text() == "from typing import Final\n\nFEATURES: Final = ('holds',)\n"
        assert not (tree / FEATURES / "limits").exists()

    def test_of_the_package_itself_leaves_what_can_be_read(self, tmp_path):
        copy(tmp_path / "tree")
        for feature in TAKEN_OUT:
            take_out(feature, tmp_path / "tree")

            assert list(left([feature], tmp_path / "tree")) == []

    def test_deletes_the_folders_of_an_app_beside(self, tree):
        for folder in ("timeline/otel", "tests/otel"):
            (tree / folder).mkdir(parents=True)
        (tree / "timeline/settings.py").write_text('APPS = ["timeline"]\nAPPS += ["timeline.otel"]  # of otel\n')

        take_out("otel", tree)

        assert list(tree.rglob("otel")) == []
        assert (tree / "timeline/settings.py").read_text() == 'APPS = ["timeline"]\n'
        (tree / "timeline/named.py").write_text("from timeline.otel import hooks\nfrom tests.otel.spans import spans\n")
        assert [line.partition(" ")[0] for line in left(["otel"], tree)] == [
            "timeline/named.py:2:",
            "timeline/named.py:1:",
        ]


class TestLeft:
    @pytest.mark.parametrize(
        "text",
        [
            "import timeline.features.limits.places\n",
            "from timeline.features.limits import places\n",
            "from timeline.features import limits\n",
            "def ask():\n    from timeline.features.limits.places import take\n",
        ],
    )
    def test_names_each_import(self, tree, text):
        take_out("limits", tree)

        [problem] = [line for line in said(tree, text) if "imports" in line]
        assert problem.startswith("timeline/named.py:")

    def test_names_what_nobody_defines(self, tree):
        take_out("limits", tree)

        [problem] = said(tree, "print(open_limit)\n")

        assert problem.startswith("timeline/named.py:1:")
        assert "open_limit" in problem

    def test_names_what_cannot_be_read(self, tree):
        assert "timeline/named.py:1: expected an indented block" in " ".join(said(tree, "for one in ():\n"))

    def test_passes_over_types_and_features_that_are_named_alike(self, tree):
        text = (
            "from typing import TYPE_CHECKING\n\nimport timeline.features.limits_of_others\n\n"
            "if TYPE_CHECKING:\n    from timeline.features.limits import places\n"
        )
        take_out("limits", tree)

        assert said(tree, text) == []


class TestLeftOut:
    @pytest.mark.parametrize("place", LEFT_OUT)
    def test_is_what_there_is(self, place):
        file, *names = place.split("::")

        assert (ROOT / "tests" / file).exists()
        for name in names:
            assert f" {name}" in (ROOT / "tests" / file).read_text(encoding="utf-8")


class TestFeaturesIn:
    def test_are_one_or_several_or_none(self):
        assert features_in("limits") == ["limits"]
        assert features_in("limits,fan_out") == ["limits", "fan_out"]
        assert features_in("none") == []

    def test_names_what_there_is_where_one_is_not_known(self):
        with pytest.raises(ArgumentTypeError, match=r"there is no limit; there are .*limits"):
            features_in("holds,limit")


class TestKnown:
    def test_are_the_folders(self):
        assert set(TAKEN_OUT) <= set(known())
