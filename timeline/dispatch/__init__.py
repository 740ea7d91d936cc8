"""A poll: rescue, send again, stage, claim, send."""
