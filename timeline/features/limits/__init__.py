"""At most so many tasks of a kind, or of a key, are under way at once: ``@task(limit=…)``."""
