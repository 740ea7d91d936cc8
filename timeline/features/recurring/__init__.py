"""Runs that the clock begins: ``daily``, ``cron`` and their kin, with their slots."""
