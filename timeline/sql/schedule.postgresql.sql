-- One task, its entity locked before it, in one trip. Where the entity or the cause is not there, or the task's place is taken:
-- nothing. The clock is read once the lock is had.
WITH held AS MATERIALIZED (
{lock}
),
story AS MATERIALIZED (
    SELECT COALESCE(%(now)s::timestamp with time zone, clock_timestamp()) AS now
    FROM held
)
INSERT INTO timeline_scheduledtask ({columns}, state, created_at)
SELECT {values}, CASE WHEN %(scheduled_at)s::timestamp with time zone > story.now THEN 'scheduled' ELSE 'available' END, story.now
FROM story
WHERE EXISTS (SELECT FROM timeline_event WHERE id = %(cause_id)s::uuid)  -- if cause_id
ON CONFLICT DO NOTHING
RETURNING state, created_at
