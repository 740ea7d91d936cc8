"""How garbage is collected while very many rows are made."""

import gc
import os
import threading

import pytest

from timeline.operations import sets
from timeline.operations.sets import MANY, collecting_seldom


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

    @pytest.mark.parametrize("holds_lock", [True, False])
    def test_is_over_in_a_process_that_another_thread_forks(self, usual, holds_lock):
        inside, done = threading.Event(), threading.Event()

        def write_many():
            with collecting_seldom():
                if holds_lock:
                    sets._lock.acquire()
                inside.set()
                done.wait(10)
                if holds_lock:
                    sets._lock.release()

        thread = threading.Thread(target=write_many)
        thread.start()
        inside.wait(10)
        if (child := os.fork()) == 0:
            is_over = gc.get_threshold() == usual
            with collecting_seldom():
                is_again = gc.get_threshold()[0] == MANY
            os._exit(0 if is_over and is_again and gc.get_threshold() == usual else 1)
        done.set()
        thread.join(10)

        assert os.waitpid(child, 0)[1] == 0
        assert gc.get_threshold() == usual

    def test_goes_on_in_a_process_that_is_forked_within_it(self, usual):
        with collecting_seldom():
            if (child := os.fork()) == 0:
                os._exit(0 if gc.get_threshold()[0] == MANY and sets._blocks == 1 else 1)

        assert os.waitpid(child, 0)[1] == 0

    @pytest.mark.parametrize("own", [MANY * 10, 0])
    def test_leaves_a_host_as_it_is_that_collects_even_less_or_never(self, usual, own):
        gc.set_threshold(own, *usual[1:])

        with collecting_seldom():
            assert gc.get_threshold()[0] == own

        assert gc.get_threshold()[0] == own
