-- So many people: most with one run that ended long ago and its eight tasks; those up to %(failed)s with a trial whose last task
-- was discarded, and which is finished. Ids grow with time, as those made in Python do.
WITH person AS (
    INSERT INTO accounts_user (password, is_superuser, email, website, is_active, is_staff, signed_up_at, trial_ends_at)
    SELECT '!', false, 'person' || number || '@example.com', '', number > %(failed)s, false, now() - interval '60 days',
        CASE WHEN number > %(failed)s THEN now() + interval '20 days' ELSE now() - interval '40 days' END
    FROM generate_series(%(first)s, %(last)s) AS number
    RETURNING id, trial_ends_at, NOT is_active AS failed
),
run AS (
    INSERT INTO timeline_timelinerun (
        id, timeline, entity_label, entity_id, key, params, started_at, recorded_at, ended_at, end_reason, end_code
    )
    SELECT (lpad(to_hex(id), 12, '0') || '7' || substr(md5(id::text), 1, 19))::uuid,
        CASE WHEN failed THEN 'trial' ELSE 'nothing' END, 'accounts.user', id::text, '', '{}', now() - interval '60 days',
        now() - interval '60 days', now() - interval '30 days', 'finished', 'finished'
    FROM person
    RETURNING id, entity_id
)
INSERT INTO timeline_scheduledtask (
    id, run_id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at, scheduled_at, anchor, anchor_value,
    definition_hash, payload, attempt, failures, lost, max_attempts, worker, error, fingerprint, reason_code, reason, actor,
    created_at, finished_at, entity_label, entity_id
)
SELECT (lpad(to_hex(person.id * 10 + number), 12, '0') || '7' || substr(md5(number || entity_id), 1, 19))::uuid, run.id,
    CASE WHEN failed THEN (ARRAY['trial.remind', 'trial.expire', 'trial.tell_expired', 'trial.check_script_usage'])[number]
        ELSE 'nothing.plain' END,
    CASE WHEN failed THEN '' ELSE number::text END, 1,
    CASE WHEN failed AND number = 4 THEN 'discarded' ELSE 'completed' END, 3, 0, 'default', due, due,
    CASE WHEN NOT failed THEN '' WHEN number > 2 THEN 'expire' ELSE 'trial_ends_at' END,
    CASE WHEN failed THEN trial_ends_at END, '', '{}', 1,
    0, 0, 5, '', '', CASE WHEN failed AND number = 4 THEN %(group)s ELSE '' END,
    CASE WHEN failed AND number = 4 THEN 'error' ELSE 'done' END, '', '', now() - interval '60 days', due, 'accounts.user', entity_id
FROM run
JOIN person ON person.id::text = run.entity_id
CROSS JOIN LATERAL generate_series(1, CASE WHEN failed THEN 4 ELSE 8 END) AS number
CROSS JOIN LATERAL (SELECT CASE
    WHEN NOT failed THEN now() - random() * interval '1 year'
    WHEN number = 1 THEN trial_ends_at - interval '5 days'
    WHEN number = 4 THEN trial_ends_at + interval '2 days'
    ELSE trial_ends_at
END AS due) AS time
