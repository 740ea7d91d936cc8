-- End the connection whose process has this number, if it is still in the transaction that began then.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(pid)s AND xact_start = %(since)s AND datname = current_database() AND usename = session_user
