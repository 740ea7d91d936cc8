-- Whose database it is, whether nobody has polled it for that long, and whether anything is on hold, or acted on in bulk.
SELECT
    site,
    polled_at IS NULL OR polled_at < strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', -%(interval)s || ' seconds'),
    EXISTS (SELECT 1 FROM timeline_hold WHERE released_at IS NULL),
    EXISTS (SELECT 1 FROM timeline_bulkaction WHERE ended_at IS NULL)
FROM timeline_identity
WHERE id = 1
