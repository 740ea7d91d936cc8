"""An app that only processes of tests have: what of it may be under way is limited, which each poll of a process asks for."""
