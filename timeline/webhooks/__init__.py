"""
Webhooks: tell receivers elsewhere where machines came to and how tasks ended.

An app of its own, ``timeline.webhooks``; needs the extra ``webhooks``.
"""
