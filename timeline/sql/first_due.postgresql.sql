-- When the longest due waiting task became due; whether there are notes of whom to wake; whether any task is available.
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
