"""Raw statements: what of them is sent."""

import pytest

from timeline.models.statements import as_array, narrowed, statement


class TestStatements:
    @pytest.mark.parametrize("vendor", ["postgresql", "sqlite"])
    def test_are_sent_without_their_lines_of_comment(self, vendor):
        text = statement("transition", vendor)

        assert text.lstrip().startswith(("WITH", "UPDATE"))
        assert not [line for line in text.splitlines() if line.lstrip().startswith("--")]


class TestNarrowing:
    TEXT = "SET a = 1,  -- if a\n    b = 2,  -- if not a\n    c = 3"

    def test_leaves_out_what_is_not_asked_for(self):
        assert narrowed(self.TEXT, {"c"}) == "    b = 2,\n    c = 3"

    def test_keeps_what_is(self):
        assert narrowed(self.TEXT, {"a"}) == "SET a = 1,\n    c = 3"


class TestAsArray:
    @pytest.mark.parametrize(
        ("texts", "written"),
        [
            ([], "{}"),
            ([""], '{""}'),
            (["NULL", None], '{"NULL",NULL}'),
            (["a,b", "{c}"], '{"a,b","{c}"}'),
            (['a"b', "c\\d"], '{"a\\"b","c\\\\d"}'),
            (['a"b', None], '{"a\\"b",NULL}'),
            (['","'], '{"\\",\\""}'),
        ],
        ids=repr,
    )
    def test_quotes_each_text(self, texts, written):
        assert as_array(texts) == written
