-- There is one writer, so that no entry comes after one with a greater number.
SELECT 0, 0, (SELECT coalesce(max(id), 0) FROM timeline_logentry)
