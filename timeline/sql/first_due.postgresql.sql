-- When the waiting task that has been due for longest became due.
SELECT scheduled_at
FROM timeline_scheduledtask
WHERE state IN ({waiting}) AND scheduled_at <= %(at)s
ORDER BY scheduled_at, id
LIMIT 1
