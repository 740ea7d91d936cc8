-- Record how far a loop has come, if the attempt still belongs to its worker. A loop has one record: it is inserted, or
-- overwritten. A record of a step that is done or begun is never overwritten.
INSERT INTO timeline_step AS step (
    origin, name, task_id, attempt, kind, recorded_at, seconds, digest, code, result, place, done, total
)
SELECT
    %(origin)s, %(name)s, task.id, COALESCE(%(done_by)s, task.attempt), %(kind)s, %(at)s, %(seconds)s, %(digest)s, %(code)s,
    %(result)s, %(place)s, %(done)s, %(total)s
FROM timeline_scheduledtask AS task
WHERE task.id = %(task)s AND task.state = 'active' AND task.attempt = %(attempt)s
ON CONFLICT (origin, name) DO UPDATE
SET task_id = excluded.task_id, attempt = excluded.attempt, kind = excluded.kind, recorded_at = excluded.recorded_at,
    seconds = excluded.seconds, code = excluded.code, result = excluded.result, place = excluded.place,
    done = excluded.done, total = excluded.total
WHERE step.kind IN ('loop', 'note', 'wait', 'over')
RETURNING result
