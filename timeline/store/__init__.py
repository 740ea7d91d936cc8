"""Rows in, rows out: the one writer of tasks, inserts, locks, and what PostgreSQL and SQLite do differently."""
