-- The journal mode of the database: wal, delete, truncate, persist, memory or off.
PRAGMA journal_mode
