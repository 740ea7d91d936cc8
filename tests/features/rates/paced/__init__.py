"""An app that only processes of tests have: what of it begins is counted."""
