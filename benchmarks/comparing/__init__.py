"""Ours and others beside each other, on one PostgreSQL, in one go: ``python -m benchmarks.comparing``."""
