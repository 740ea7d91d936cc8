"""A loop beside a thread: what is raised on the thread, and what its coroutines raise, leaves the others to go on."""

import asyncio
import signal
import threading
from contextlib import contextmanager

import pytest
from asgiref.sync import sync_to_async

from timeline.engine.execute_async import Guise, LoopBeside, own


class Alarm(Exception):
    """What a signal raises, as Celery's soft time limit does."""


def ring():
    """Let the signal come in a moment."""
    signal.setitimer(signal.ITIMER_REAL, 0.05)


@contextmanager
def alarm(error):
    """Let the signal raise this on this thread; it comes when it is asked for."""

    def raise_it(_number, _frame):
        raise error

    before = signal.signal(signal.SIGALRM, raise_it)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class TestRun:
    def test_gives_what_the_coroutine_gives(self):
        async def main():
            return await sync_to_async(threading.current_thread)()

        assert LoopBeside(main, pytest.fail).run() is threading.current_thread()

    @pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(3)], ids=repr)
    def test_raises_what_the_coroutine_raises(self, error):
        async def main():
            raise error

        with pytest.raises(type(error)):
            LoopBeside(main, pytest.fail).run()

    @pytest.mark.parametrize("error", [Alarm("now"), SystemExit(3), KeyboardInterrupt()], ids=repr)
    def test_goes_on_after_an_error_that_a_signal_raises_here(self, error):
        told = []

        async def main():
            ring()
            while not told:
                await asyncio.sleep(0.01)
            return await sync_to_async(threading.current_thread)()

        with alarm(error):
            here = LoopBeside(main, told.append).run()

        assert (here, told) == (threading.current_thread(), [error])

    def test_goes_on_after_several(self):
        told = []

        async def main():
            for count in (1, 2):
                ring()
                while len(told) < count:
                    await asyncio.sleep(0.01)

        with alarm(Alarm("again")):
            LoopBeside(main, told.append).run()

        assert len(told) == 2

    def test_leaves_no_loop_that_still_ends_to_who_comes_next(self):
        """Its coroutine would be given to that loop, and would never be run."""
        told = []

        async def linger():
            try:
                await asyncio.sleep(30)
            finally:
                await asyncio.sleep(0.2)  # The loop waits for it before it closes.

        async def main():
            loops.append(asyncio.get_running_loop())
            self.lingering = asyncio.create_task(linger())
            ring()
            while not told:
                await asyncio.sleep(0.01)

        loops = []
        with alarm(Alarm("now")):
            LoopBeside(main, told.append).run()

        assert loops[0].is_closed()

    def test_comes_back_though_a_coroutine_that_lingers_tries_to_close_the_loop(self):
        told = []

        async def linger():
            try:
                await asyncio.sleep(30)
            finally:
                with pytest.raises(RuntimeError):  # It runs.
                    asyncio.get_running_loop().close()

        async def main():
            self.lingering = asyncio.create_task(linger())
            ring()
            while not told:
                await asyncio.sleep(0.01)
            signal.setitimer(signal.ITIMER_REAL, 5)  # If it does not come back.
            return "its own"

        with alarm(Alarm("now")):
            assert LoopBeside(main, told.append).run() == "its own"

    def test_leaves_an_error_that_a_signal_raises_in_what_a_coroutine_does_here_to_the_coroutine(self):
        def wait():
            ring()
            threading.Event().wait(30)

        async def main():
            with pytest.raises(Alarm):
                await sync_to_async(wait)()
            return "its own"

        with alarm(Alarm("now")):
            assert LoopBeside(main, pytest.fail).run() == "its own"

    @pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
    def test_has_no_task_end_the_others(self, kind):
        error = kind("of it all")

        async def end():
            raise error

        async def main():
            ended = asyncio.create_task(end())
            await asyncio.sleep(0.01)
            with pytest.raises(Guise) as raised:
                await ended
            return own(raised.value)

        assert LoopBeside(main, pytest.fail).run() is error

    def test_leaves_a_task_that_never_began_as_asyncio_does(self, recwarn):
        async def wait():
            await asyncio.sleep(1)

        async def main():
            task = asyncio.create_task(wait())
            task.cancel()
            await asyncio.wait({task})
            return task.cancelled()

        assert LoopBeside(main, pytest.fail).run()
        assert not list(recwarn)


class TestOwn:
    def test_is_the_error_itself(self):
        error = ValueError("boom")

        assert own(error) is error

    def test_is_found_in_a_group_of_several(self):
        ended = SystemExit(3)

        assert own(BaseExceptionGroup("two", [ValueError("boom"), Guise(ended)])) is ended
        assert isinstance(own(BaseExceptionGroup("two", [ValueError(), GeneratorExit()])), BaseExceptionGroup)
