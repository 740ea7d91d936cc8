"""Notice which tasks are changed by what is called."""

from contextvars import copy_context
from uuid import UUID

from timeline.store.transition import notice, noticing

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))


class TestNoticing:
    def test_collects_what_is_changed_within_the_block_only(self):
        notice([ONE])
        with noticing() as noticed:
            notice([TWO])
            notice({THREE: "row"})
        notice([ONE])

        assert noticed == {TWO, THREE}

    def test_collects_what_is_changed_in_copies_of_the_context(self):
        with noticing() as noticed:
            copy_context().run(notice, [ONE])

        assert noticed == {ONE}

    def test_lets_a_block_within_collect_its_own(self):
        with noticing() as outer:
            notice([ONE])
            with noticing() as inner:
                notice([TWO])
            notice([THREE])

        assert (outer, inner) == ({ONE, THREE}, {TWO})
