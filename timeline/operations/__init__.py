"""Every write: one module a verb, all state through ``_transition``. Each function takes ``now`` and ``using``."""
