"""The public verbs: one module each. Each function takes ``now`` and ``using``."""
