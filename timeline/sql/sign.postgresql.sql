-- Whose database it is, and whether nobody has polled it for so long.
SELECT site, polled_at IS NULL OR polled_at < clock_timestamp() - %(interval)s::interval
FROM timeline_identity
WHERE id = 1
