"""``after_run``, as declared: what is wrong with it is an error at start, with class and remedy."""

import pytest

from timeline import Timeline, after, after_run, task
from timeline.exceptions import DefinitionError


class Settlement(Timeline):
    @task(after())
    def settle(self): ...


def declare(starts_on, name="Report", **options):
    takes = (lambda self, order: None) if "entity" in options else (lambda self: None)
    takes.__name__ = "go"
    return type(name, (Timeline,), {"starts_on": starts_on, "go": task(after())(takes), **options})


class TestAfterRun:
    def test_stands_beside_events(self):
        start = after_run(Settlement)

        assert declare((start, "books.reopened")).definition.starts_on == (start, "books.reopened")

    @pytest.mark.parametrize(
        ("start", "options", "said"),
        [
            (lambda: after_run("settlement"), {}, r"after_run\('settlement'\), which is no timeline"),
            (lambda: after_run(Timeline), {}, r"after_run\(Timeline\), which is no timeline"),
            (lambda: after_run(Settlement, ended="well"), {}, "ended='well'"),
            (
                lambda: after_run(Settlement),
                {"entity": "testapp.Order"},
                "is about testapp.order, and that about the system",
            ),
            (
                lambda: after_run(declare("x", name="Order", entity="testapp.Order")),
                {},
                "is about the system, and that about testapp.order",
            ),
            (lambda: after_run(declare(after_run(Settlement), name="First")), {}, "starts after a run itself"),
            (lambda: after_run(Settlement), {"name": "settlement"}, "which is itself"),
        ],
    )
    def test_is_refused(self, start, options, said):
        with pytest.raises(DefinitionError, match=said):
            declare(start(), **options)

    def test_goes_with_no_key_of_a_payload(self):
        with pytest.raises(DefinitionError, match="no event and has no payload"):
            declare(after_run(Settlement), key="day")

    def test_goes_with_once(self):
        assert declare(after_run(Settlement), once=True).definition.once
