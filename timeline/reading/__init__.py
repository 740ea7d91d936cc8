"""Questions of people: what is foreseen, what happened to a task, what an entity's timeline looks like. Writes nothing."""
