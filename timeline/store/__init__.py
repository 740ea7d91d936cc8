"""Rows in, rows out: the one writer of tasks, inserts and locks."""
