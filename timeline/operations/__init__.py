"""The public verbs: one module each."""
