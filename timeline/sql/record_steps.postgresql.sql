-- Record steps of several tasks at once, each if its attempt still belongs to its worker. Tasks that somebody has locked are
-- skipped. A step that is not returned was not recorded here. Returns the results as the database has stored them.
INSERT INTO timeline_step (origin, name, task_id, attempt, kind, recorded_at, seconds, digest, code, result)
SELECT new.origin, new.name, NULLIF(task.id, new.origin), task.attempt, 'done', new.at, new.seconds, new.digest, new.code,
    new.result
FROM unnest(
    %(origins)s::uuid[], %(names)s::text[], %(tasks)s::uuid[], %(attempts)s::integer[], %(ats)s::timestamptz[],
    %(seconds)s::double precision[], %(digests)s::text[], %(codes)s::text[], %(results)s::jsonb[]
) AS new(origin, name, task, attempt, at, seconds, digest, code, result)
JOIN timeline_scheduledtask AS task ON task.id = new.task
WHERE task.state || '' = 'active' AND task.attempt = new.attempt
FOR NO KEY UPDATE OF task SKIP LOCKED
ON CONFLICT (origin, name) DO NOTHING
RETURNING origin::text, name, result::text
