-- When the waiting task that has been due for longest became due; and whether there are notes of whom to wake.
SELECT
    (
        SELECT scheduled_at
        FROM timeline_scheduledtask
        WHERE state IN ({waiting}) AND scheduled_at <= %(at)s
        ORDER BY scheduled_at, id
        LIMIT 1
    ),
    EXISTS (SELECT 1 FROM timeline_wake)
