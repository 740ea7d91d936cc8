-- Record the end of a step that this attempt has recorded as begun, if the attempt still belongs to its worker.
UPDATE timeline_step AS step
SET kind = %(kind)s, recorded_at = %(at)s, seconds = %(seconds)s, result = %(result)s
FROM timeline_scheduledtask AS task
WHERE task.id = %(task)s AND task.state = 'active' AND task.attempt = %(attempt)s
    AND step.origin = %(origin)s AND step.name = %(name)s AND step.kind = 'begun' AND COALESCE(step.task_id, step.origin) = task.id
    AND step.attempt = task.attempt
RETURNING result
