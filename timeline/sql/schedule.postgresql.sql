-- Lock an entity and insert one task, in one trip. Nothing is inserted if the entity or the cause does not exist, or if there
-- is such a task already. The clock is read when the lock is held.
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
