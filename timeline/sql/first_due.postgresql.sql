-- The due time of the waiting task that is due for the longest time; whether there are notes about tasks to wake; and whether
-- any task is available.
SELECT
    (
        SELECT scheduled_at
        FROM timeline_scheduledtask
        WHERE state IN ({waiting}) AND scheduled_at <= %(at)s
        ORDER BY scheduled_at, id
        LIMIT 1
    ),
    EXISTS (SELECT 1 FROM timeline_wake),
    (
        SELECT true
        FROM timeline_scheduledtask
        WHERE state = 'available'
        ORDER BY scheduled_at, id
        LIMIT 1
    )
