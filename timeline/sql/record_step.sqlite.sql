-- Record a step, if the attempt still belongs to its worker.
INSERT INTO timeline_step (origin, name, task_id, attempt, kind, recorded_at, seconds, digest, code, result)
SELECT %(origin)s, %(name)s, NULLIF(task.id, %(origin)s), task.attempt, %(kind)s, %(at)s, %(seconds)s, %(digest)s,
    %(code)s, %(result)s
FROM timeline_scheduledtask AS task
WHERE task.id = %(task)s AND task.state = 'active' AND task.attempt = %(attempt)s
ON CONFLICT (origin, name) DO NOTHING
RETURNING result
