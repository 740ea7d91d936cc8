"""Nothing of a target runs for a while: a person holds it, or a brake does because too much was to be destroyed."""
