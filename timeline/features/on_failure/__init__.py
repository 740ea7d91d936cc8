"""A handler of its own for a task that has failed for good: a row of its own, written with the discard."""
