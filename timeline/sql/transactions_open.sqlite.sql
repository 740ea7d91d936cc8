-- The id of the last log entry. The two numbers of transactions are not needed: there is only one writer, so no entry is
-- committed after an entry with a greater id.
SELECT 0, 0, (SELECT coalesce(max(id), 0) FROM timeline_logentry)
