"""An app that only processes of tests have: a machine with conditions and effects."""
