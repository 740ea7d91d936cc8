"""How garbage is collected while very many rows are made."""

import gc

import pytest

from timeline.operations.collecting import MANY, collecting_seldom


@pytest.fixture(autouse=True)
def usual():
    """The host's thresholds, which stand again afterwards."""
    thresholds = gc.get_threshold()
    yield thresholds
    gc.set_threshold(*thresholds)


class TestCollectingSeldom:
    def test_lasts_for_the_block(self, usual):
        with collecting_seldom():
            within = gc.get_threshold()

        assert within == (MANY, *usual[1:])
        assert gc.get_threshold() == usual

    def test_ends_with_an_error(self, usual):
        with pytest.raises(KeyError), collecting_seldom():
            raise KeyError

        assert gc.get_threshold() == usual

    def test_lasts_until_the_last_of_several_blocks_ends(self, usual):
        first, second = collecting_seldom(), collecting_seldom()

        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        between = gc.get_threshold()
        second.__exit__(None, None, None)

        assert between[0] == MANY
        assert gc.get_threshold() == usual

    def test_leaves_what_somebody_else_has_set_meanwhile(self, usual):
        with collecting_seldom():
            gc.set_threshold(1234, *usual[1:])

        assert gc.get_threshold()[0] == 1234

    @pytest.mark.parametrize("own", [MANY * 10, 0])
    def test_leaves_a_host_as_it_is_that_collects_even_less_or_never(self, usual, own):
        gc.set_threshold(own, *usual[1:])

        with collecting_seldom():
            assert gc.get_threshold()[0] == own

        assert gc.get_threshold()[0] == own
