"""Watches that tests hand to a run."""

from timeline.operations.running import Watch


class AtEntry(Watch):
    """Lets somebody else do something after the start was committed, before the handler is entered."""

    def __init__(self, action):
        self.action = action

    def entered(self, task):
        self.action(task)
