"""Parts of statements: what is left out, and how arrays are written."""

import pytest

from timeline.dialects import as_array, narrowed


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
