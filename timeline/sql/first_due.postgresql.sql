-- When the waiting task that has been due for longest became due; whether there are notes of whom to wake; and whether any task
-- is available. All are read by the same index: in order, so that PostgreSQL does not read the table for the last one.
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
