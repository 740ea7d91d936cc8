"""Debounce: of a burst of events, one task, which is due when it has been quiet for a while."""
