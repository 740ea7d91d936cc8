"""Finds and mends, a limited part at a time, what no signal saw."""
