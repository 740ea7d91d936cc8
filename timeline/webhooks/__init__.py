"""Webhooks: tell receivers elsewhere where machines came to and how tasks ended. Needs the extra ``webhooks``."""
