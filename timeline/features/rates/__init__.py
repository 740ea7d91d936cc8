"""At most so many attempts of a kind, or of a key, begin within a time: ``@task(rate=…)``, and ``RateLimited``."""
