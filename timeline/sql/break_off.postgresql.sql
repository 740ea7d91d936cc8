-- End the connection of a process, if it is still in the transaction that began at the given time.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(pid)s AND xact_start = %(since)s AND datname = current_database() AND usename = session_user
