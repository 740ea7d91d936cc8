-- A person each with one run of ten tasks. Nine runs of ten ended within the last year; of the tenth all tasks are ahead.
-- Ids grow with time, as those made in Python do.
WITH person AS (
    INSERT INTO accounts_user (
        password, is_superuser, email, website, is_active, is_staff, signed_up_at, trial_ends_at
    )
    SELECT '!', false, 'person' || number || '@example.com', '', true, false, now(), now()
    FROM generate_series(%(first)s, %(last)s) AS number
    RETURNING id
),
run AS (
    INSERT INTO timeline_timelinerun (
        id, timeline, entity_label, entity_id, key, params, started_at, ended_at, end_reason
    )
    SELECT (lpad(to_hex(id), 12, '0') || '7' || substr(md5(id::text), 1, 19))::uuid, 'nothing', 'accounts.user', id::text,
        '', '{}', now() - interval '1 year', CASE WHEN id %% 10 > 0 THEN now() END,
        CASE WHEN id %% 10 > 0 THEN 'finished' ELSE '' END
    FROM person
    RETURNING id, entity_label, entity_id, ended_at
)
INSERT INTO timeline_scheduledtask (
    id, run_id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor,
    definition_hash, payload, attempt, failures, lost, max_attempts, worker, error, reason_code, reason, actor, created_at,
    finished_at, entity_label, entity_id
)
SELECT (lpad(to_hex(entity_id::bigint * 10 + number), 12, '0') || '7' || substr(md5(number || entity_id), 1, 19))::uuid,
    run.id, 'nothing.plain', number::text, 1, CASE WHEN ended_at IS NULL THEN 'scheduled' ELSE 'completed' END, 0, 0,
    'default', due, due, '', '', '{}', 0, 0, 0, 5, '', '', CASE WHEN ended_at IS NULL THEN '' ELSE 'done' END, '', '', now(),
    CASE WHEN ended_at IS NOT NULL THEN due END, entity_label, entity_id
FROM run
CROSS JOIN generate_series(0, 9) AS number
CROSS JOIN LATERAL (SELECT CASE
    WHEN ended_at IS NULL THEN now() + interval '1 hour' + random() * interval '60 days'
    ELSE now() - random() * interval '1 year'
END AS due) AS time
