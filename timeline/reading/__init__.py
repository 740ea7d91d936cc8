"""What people ask: what is foreseen, how a task came to where it is, how an entity's timeline looks. Writes nothing."""
