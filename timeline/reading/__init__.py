"""Questions of people: what may still come, what happened to a task, what an entity's timeline looks like. No writes."""
