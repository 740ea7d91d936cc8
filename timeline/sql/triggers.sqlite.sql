SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'timeline!_guard!_%' ESCAPE '!'
