"""An app that only processes of tests have: bursts of it take seconds."""
