-- The site to which the database belongs, whether nobody has polled it for a given time, whether anything is on hold, and
-- whether a bulk action is under way.
SELECT
    site,
    polled_at IS NULL OR polled_at < clock_timestamp() - %(interval)s::interval,
    EXISTS (SELECT 1 FROM timeline_hold WHERE released_at IS NULL),
    EXISTS (SELECT 1 FROM timeline_bulkaction WHERE ended_at IS NULL)
FROM timeline_identity
WHERE id = 1
