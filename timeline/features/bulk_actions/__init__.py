"""A person acts on all tasks that a filter selects; polls do the work, batch by batch."""
