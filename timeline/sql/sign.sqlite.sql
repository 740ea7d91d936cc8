-- Whose database it is, and whether nobody has polled it for so many seconds.
SELECT site, polled_at IS NULL OR polled_at < strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', -%(interval)s || ' seconds')
FROM timeline_identity
WHERE id = 1
