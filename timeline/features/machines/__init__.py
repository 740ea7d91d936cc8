"""A timeline with a table of states: events move its runs."""
