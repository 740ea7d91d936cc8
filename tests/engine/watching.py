"""Watches that tests hand to a run."""

from timeline.engine.groups import Watch


class AtEntry(Watch):
    """Lets somebody else do something after the start was committed and the last look taken, before the handler is entered."""

    def __init__(self, action):
        self.action = action
        self.tasks = []
        self.asked = 0

    def entered(self, *tasks):
        self.tasks.extend(tasks)

    def stopping(self):
        self.asked += 1  # Once for the group, then before each handler.
        if self.asked == 2:
            for task in self.tasks:
                self.action(task)
        return False


class Killed(Watch):
    """Of a process that is ended from outside in the middle of a handler: nothing is written any more."""

    def is_killed(self):
        return True


class Stopping(Watch):
    """Of a worker that was told to stop before it entered any handler."""

    def stopping(self):
        return True
