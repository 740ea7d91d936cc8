"""A plugin of pretix."""
