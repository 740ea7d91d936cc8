"""How a worker's process collects garbage."""

import gc

from timeline.operations.sets import MANY
from timeline.worker.process import collecting_seldom


class TestCollectingSeldom:
    def test_lasts_for_the_block(self):
        usual = gc.get_threshold()

        with collecting_seldom():
            within, frozen = gc.get_threshold(), gc.get_freeze_count()

        assert (within[0], within[1:]) == (MANY, usual[1:])
        assert frozen > 10_000  # All that is loaded.
        assert (gc.get_threshold(), gc.get_freeze_count()) == (usual, 0)

    def test_leaves_a_host_that_collects_even_less_as_it_is(self):
        usual = gc.get_threshold()
        gc.set_threshold(MANY * 10, *usual[1:])
        try:
            with collecting_seldom():
                assert gc.get_threshold()[0] == MANY * 10
        finally:
            gc.set_threshold(*usual)

    def test_is_off_where_the_host_has_it_off(self):
        usual = gc.get_threshold()
        gc.set_threshold(0)
        try:
            with collecting_seldom():
                assert gc.get_threshold()[0] == 0
        finally:
            gc.set_threshold(*usual)
