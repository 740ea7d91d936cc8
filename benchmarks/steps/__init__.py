"""How many steps a second are taken and recorded: ours, the statement alone, and others. ``python -m benchmarks.steps``."""
