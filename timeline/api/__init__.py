"""The REST face. A host includes ``timeline.api.urls``; needs the extra ``api``."""
