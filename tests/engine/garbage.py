"""Watch what a run leaves behind for the collector of garbage."""

import gc
from contextlib import contextmanager
from weakref import ref


@contextmanager
def without_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Seen:
    """Contexts that handlers had, with their tasks and entities, held by nobody here."""

    def __init__(self):
        self._seen = []

    def see(self, job, order):
        self._seen += [ref(job), ref(job.task), ref(order)]

    @property
    def left(self):
        """What of them is still there: names of classes. To be asked before the collector comes."""
        assert self._seen
        return [type(there).__name__ for one in self._seen if (there := one()) is not None]


def run_and_look(row, at, run_at, seen):
    """Run a task without the collector: the state of its row, and what is left of what its handler was given."""
    with without_collector():
        return run_at(row, at).state, seen.left
