-- Record a step, while the attempt is its worker's: whoever takes it from them changes the task's row, which is locked here last.
INSERT INTO timeline_step (origin, name, task_id, attempt, kind, recorded_at, seconds, digest, code, result)
SELECT %(origin)s, %(name)s, task.id, task.attempt, %(kind)s, %(at)s, %(seconds)s, %(digest)s, %(code)s, %(result)s::jsonb
FROM timeline_scheduledtask AS task
CROSS JOIN (SELECT set_config('lock_timeout', %(patience)s, true)) AS patience  -- if within
WHERE task.id = %(task)s AND task.state || '' = 'active' AND task.attempt = %(attempt)s
FOR NO KEY UPDATE OF task
ON CONFLICT (origin, name) DO NOTHING
RETURNING id
