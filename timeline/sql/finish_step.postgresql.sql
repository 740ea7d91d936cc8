-- Record the end of a step that this attempt has recorded as begun, if the attempt still belongs to its worker. The task's row
-- is locked first.
WITH task AS MATERIALIZED (
    SELECT id, attempt
    FROM timeline_scheduledtask
    WHERE id = %(task)s AND state || '' = 'active' AND attempt = %(attempt)s
    FOR NO KEY UPDATE
)
UPDATE timeline_step AS step
SET kind = %(kind)s, recorded_at = %(at)s, seconds = %(seconds)s, result = %(result)s::jsonb
FROM task
WHERE step.origin = %(origin)s AND step.name = %(name)s AND step.kind = 'begun' AND COALESCE(step.task_id, step.origin) = task.id
    AND step.attempt = task.attempt
RETURNING step.result::text
