"""An app that only processes of tests have: what of it sleeps takes seconds."""
