"""An app that only processes of tests have: what of it fails for good has a handler."""
