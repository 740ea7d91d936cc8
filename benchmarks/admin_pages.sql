-- 7 of 10 tasks are ahead, spread over 60 days but crowded on one, or overdue; of the rest one in a hundred failed, and three in
-- ten were cancelled, few of them by an operator.
INSERT INTO timeline_scheduledtask (id, task_key, occurrence, revision, entity_label, entity_id, state, seq, priority, queue,
    nominal_at, scheduled_at, anchor, definition_hash, payload, attempt, failures, lost, max_attempts, worker, error,
    reason_code, reason, actor, created_at, finished_at)
SELECT gen_random_uuid(), (ARRAY['trial.remind', 'trial.expire', 'trial.tell_expired', 'other.rare'])[CASE WHEN n %% 5000 = 0
    THEN 4 ELSE n %% 3 + 1 END], n::text, 1, 'accounts.user', (n / 4 + 1)::text, state, 0, 0, 'default', at, at, '', '', '{}',
    0, 0, 0, 5, '', '', CASE WHEN NOT final THEN '' WHEN state = 'discarded' THEN 'error' WHEN state = 'completed' THEN 'done'
        WHEN n %% 10000 = 111 THEN 'operator' WHEN n %% 7 = 1 THEN 'guard' ELSE 'exit' END, '', '', now(),
    CASE WHEN final THEN at END
FROM (SELECT n, at, final, CASE WHEN NOT final THEN CASE WHEN at < now() THEN 'available' ELSE 'scheduled' END
        WHEN n %% 1000 < 10 THEN 'discarded' WHEN n %% 1000 < 310 THEN 'cancelled' ELSE 'completed' END AS state
    FROM (SELECT n, n %% 10 < 3 AS final, CASE WHEN n %% 10 < 3 THEN now() - random() * interval '90 days'
            WHEN n %% 10 = 3 AND n %% 100 < 10 THEN now() - random() * interval '3 hours'
            WHEN n %% 10 = 4 THEN now() + interval '5 days' + random() * interval '1 hour'
            ELSE now() + random() * interval '60 days' END AS at
        FROM generate_series(1, %(rows)s) n) placed) told;
-- A run for each four tasks; two of three have ended.
INSERT INTO timeline_timelinerun (id, timeline, entity_label, entity_id, key, params, started_at, ended_at, end_reason)
SELECT gen_random_uuid(), 'trial', 'accounts.user', n::text, '', '{}', began, CASE WHEN n %% 3 > 0 THEN ended END,
    CASE WHEN n %% 3 > 0 THEN 'finished' ELSE '' END
FROM (SELECT n, began, began + (now() - began) * random() AS ended
    FROM (SELECT n, now() - random() * interval '90 days' AS began FROM generate_series(1, %(rows)s / 4) n) begun) told;
