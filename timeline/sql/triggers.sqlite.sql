-- The names of our triggers and tables.
SELECT name FROM sqlite_master WHERE type IN ('trigger', 'table') AND name LIKE 'timeline!_%' ESCAPE '!'
