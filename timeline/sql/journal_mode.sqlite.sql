-- How the database keeps its journal: wal, delete, truncate, persist, memory or off.
PRAGMA journal_mode
