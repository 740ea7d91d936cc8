-- %(people)s users, each with a run of a trial and ten tasks: one ahead (of a hundred one is late, of ten one on the same day),
-- nine that have ended, of which three were cancelled. Keys grow with time, as those made in Python do.
INSERT INTO accounts_user (password, is_superuser, email, website, is_active, is_staff, signed_up_at, trial_ends_at)
SELECT '!', false, 'user' || n || '@example.com', 'site' || n || '.example', true, false, now(), now() + interval '30 days'
FROM generate_series(1, %(people)s) n;

INSERT INTO timeline_timelinerun (id, timeline, entity_label, entity_id, key, params, started_at, ended_at, end_code, end_reason, once,
    is_cleared, pruned, state, back, moves)
SELECT (lpad(to_hex(id), 12, '0') || '7' || substr(md5('run' || id), 1, 19))::uuid, 'trial', 'accounts.user', id::text, '', '{}',
    now() - (id %% 90) * interval '1 day', CASE WHEN id %% 5 > 0 THEN now() END, CASE WHEN id %% 5 > 0 THEN 'finished' ELSE '' END,
    CASE WHEN id %% 5 > 0 THEN 'finished' ELSE '' END, false, false, false, '', '', 0
FROM accounts_user;

INSERT INTO timeline_scheduledtask (id, run_id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at,
    scheduled_at, anchor, definition_hash, payload, attempt, failures, lost, max_attempts, worker, error, fingerprint, awaits,
    awaits_key, awaits_label, awaits_id, awaits_other, limit_key, slot, held_until, reason_code, reason, actor, created_at,
    finished_at, entity_label, entity_id)
SELECT (lpad(to_hex(u.id * 10 + number), 12, '0') || '7' || substr(md5(number || 'task' || u.id), 1, 19))::uuid,
    (lpad(to_hex(u.id), 12, '0') || '7' || substr(md5('run' || u.id), 1, 19))::uuid,
    kind, number::text, 1, state, 0, 0, 'default', due, due, '', '', '{"plan": "pro"}', 0, 0, 0, 5, '', '', '', '', '', '', '',
    false, CASE WHEN number = 0 AND u.id %% 20 = 0 THEN 'seat:' || u.id %% 1000 ELSE '' END, 0, '',
    CASE state WHEN 'completed' THEN 'done' WHEN 'cancelled' THEN
        CASE WHEN u.id %% 100 = 0 THEN 'operator' WHEN number = 7 THEN 'guard' ELSE 'exit' END ELSE '' END,
    CASE WHEN state = 'cancelled' THEN 'unless has_payment is true' ELSE '' END, '', now(),
    CASE WHEN state IN ('completed', 'cancelled') THEN due END, 'accounts.user', u.id::text
FROM accounts_user u
CROSS JOIN generate_series(0, 9) AS number
CROSS JOIN LATERAL (SELECT
    (ARRAY['trial.expire', 'trial.remind', 'trial.tell_expired', 'trial.check_script_usage', 'work.count', 'work.many',
        'nothing.plain', 'trial.remind', 'enrolled.first', 'gone.rare'])[number + 1] AS kind,
    CASE WHEN number = 0 THEN CASE WHEN u.id %% 100 = 1 THEN 'available' ELSE 'scheduled' END
        WHEN number > 6 THEN 'cancelled' ELSE 'completed' END AS state,
    CASE WHEN number > 0 THEN now() - random() * interval '90 days'
        WHEN u.id %% 100 = 1 THEN now() - random() * interval '3 hours'
        WHEN u.id %% 10 = 2 THEN now() + interval '5 days' + random() * interval '1 hour'
        ELSE now() + random() * interval '60 days' END AS due) AS told;

-- One owner has %(owned)s entities, another as many, and everybody else as many: each with a run and a task ahead, one that has
-- ended well and one that was cancelled.
INSERT INTO django_admin_log (action_time, user_id, object_repr, action_flag, change_message)
SELECT now(), CASE WHEN n <= %(owned)s THEN 10 WHEN n <= 2 * %(owned)s THEN 11 ELSE 12 + n %% 500 END, 'entity ' || n, 1, ''
FROM generate_series(1, 3 * %(owned)s) n;

INSERT INTO timeline_timelinerun (id, timeline, entity_label, entity_id, key, params, started_at, end_code, end_reason, once,
    is_cleared, pruned, state, back, moves)
SELECT (lpad(to_hex(id), 12, '0') || '7' || substr(md5('owned' || id), 1, 19))::uuid, 'owned', 'admin.logentry', id::text, '', '{}',
    now(), '', '', false, false, false, '', '', 0
FROM django_admin_log;

INSERT INTO timeline_scheduledtask (id, run_id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at,
    scheduled_at, anchor, definition_hash, payload, attempt, failures, lost, max_attempts, worker, error, fingerprint, awaits,
    awaits_key, awaits_label, awaits_id, awaits_other, limit_key, slot, held_until, reason_code, reason, actor, created_at,
    finished_at, entity_label, entity_id)
SELECT (lpad(to_hex(20000000 + id * 3 + number), 12, '0') || '7' || substr(md5(number || 'mine' || id), 1, 19))::uuid,
    (lpad(to_hex(id), 12, '0') || '7' || substr(md5('owned' || id), 1, 19))::uuid, 'owned.' || kind, '', 1, state, 0, 0,
    'default', due, due, '', '', '{}', 0, 0, 0, 5, '', '', '', '', '', '', '', false, '', 0, '', code, why, '', now(),
    CASE WHEN number > 0 THEN due END, 'admin.logentry', id::text
FROM django_admin_log
CROSS JOIN (VALUES (0, 'renew', 'scheduled', '', ''), (1, 'check', 'completed', 'done', ''),
    (2, 'tell', 'cancelled', 'guard', 'unless is_quiet is true')) AS told (number, kind, state, code, why)
CROSS JOIN LATERAL (SELECT now() + interval '1 second' * CASE WHEN number = 0 THEN 1 ELSE -1 END
    * (('x' || substr(md5(number || 'due' || id), 1, 7))::bit(28)::int %% 31536000)) AS moment (due);

-- %(failed)s tasks that were discarded within a month, in forty groups, with an attempt each in their logs.
INSERT INTO timeline_scheduledtask (id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at,
    scheduled_at, anchor, definition_hash, payload, attempt, failures, lost, max_attempts, worker, error, fingerprint, awaits,
    awaits_key, awaits_label, awaits_id, awaits_other, limit_key, slot, held_until, reason_code, reason, actor, created_at,
    started_at, finished_at, entity_label, entity_id)
SELECT (lpad(to_hex(40000000 + n), 12, '0') || '7' || substr(md5('dead' || n), 1, 19))::uuid,
    (ARRAY['trial.remind', 'trial.expire', 'trial.tell_expired', 'work.count'])[n %% 4 + 1], 'failed ' || n, 1, 'discarded', 4, 0,
    'default', due, due, '', '', '{}', 2, 2, 0, 2, 'host:1', 'ValueError: the receiver ' || n %% 40 || ' refused it',
    left(md5('group' || n %% 40), 16), '', '', '', '', false, '', 0, '', 'error', 'the receiver refused it', '', due, due, due,
    'accounts.user', (n * 7 %% %(people)s + 1)::text
FROM generate_series(1, %(failed)s) n CROSS JOIN LATERAL (SELECT now() - n * interval '4 minutes' AS due) AS moment;

INSERT INTO timeline_logentry (task_id, seq, at, from_state, to_state, attempt, actor, reason_code, reason, detail)
SELECT id, step, scheduled_at, was, becomes, (step + 1) / 2, '', code, '', CASE WHEN code = '' THEN '{}' ELSE
    '{"error": {"class": "ValueError", "message": "refused", "traceback": ""}}' END::jsonb
FROM timeline_scheduledtask
CROSS JOIN (VALUES (1, 'available', 'active', ''), (2, 'active', 'retryable', 'error'), (3, 'available', 'active', ''),
    (4, 'active', 'discarded', 'error')) AS told (step, was, becomes, code)
WHERE state = 'discarded';
INSERT INTO timeline_logentry (task_id, seq, at, from_state, to_state, attempt, actor, reason_code, reason, detail)
SELECT id, 1, scheduled_at, 'scheduled', 'cancelled', 0, '', reason_code, reason,
    '{"said": {"name": "guard", "values": {"guard": "unless is_quiet"}}}'
FROM timeline_scheduledtask WHERE state = 'cancelled' AND reason_code = 'guard';

-- One user with %(open)s open rows, of which a tenth will try again.
INSERT INTO timeline_scheduledtask (id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at,
    scheduled_at, anchor, definition_hash, payload, attempt, failures, lost, max_attempts, worker, error, fingerprint, awaits,
    awaits_key, awaits_label, awaits_id, awaits_other, limit_key, slot, held_until, reason_code, reason, actor, created_at,
    entity_label, entity_id)
SELECT (lpad(to_hex(80000000 + n), 12, '0') || '7' || substr(md5('open' || n), 1, 19))::uuid, 'trial.remind', 'open ' || n, 1,
    CASE WHEN n %% 10 = 0 THEN 'retryable' ELSE 'scheduled' END, 0, 0, 'default', due, due, '', '', '{"plan": "pro"}',
    n %% 10 / 9, n %% 10 / 9, 0, 5, '', '', '', '', '', '', '', false, '', 0, '', CASE WHEN n %% 10 = 0 THEN 'error' ELSE '' END,
    '', '', now(), 'accounts.user', '6'
FROM generate_series(1, %(open)s) n CROSS JOIN LATERAL (SELECT now() + n * interval '3 minutes' AS due) AS moment;

-- One task on hold that has failed %(worn)s times and rests now, with as many steps.
INSERT INTO timeline_scheduledtask (id, run_id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at,
    scheduled_at, anchor, definition_hash, payload, attempt, failures, lost, max_attempts, worker, error, fingerprint, awaits,
    awaits_key, awaits_label, awaits_id, awaits_other, limit_key, slot, held_until, reason_code, reason, actor, created_at,
    started_at, entity_label, entity_id)
SELECT (lpad(to_hex(90000000), 12, '0') || '7' || substr(md5('worn'), 1, 19))::uuid, id, 'trial.remind', 'worn', 1, 'retryable',
    4 * %(worn)s, 0, 'default', now(), now() + interval '5 minutes', '', '', '{}', %(worn)s, %(worn)s, 0, 2000, 'host:1',
    'ValueError: refused', '', '', '', '', '', false, '', 0, '', 'in_doubt', '', '', now() - interval '9 days', now(),
    entity_label, entity_id
FROM timeline_timelinerun WHERE timeline = 'trial' AND entity_id = '7';
INSERT INTO timeline_logentry (task_id, seq, at, from_state, to_state, attempt, actor, reason_code, reason, detail)
SELECT id, 4 * (n - 1) + step, now() - (%(worn)s - n) * interval '10 minutes' + step * interval '1 second', was, becomes, n, '',
    CASE WHEN step < 4 THEN '' WHEN n < %(worn)s THEN 'error' ELSE 'in_doubt' END, '', CASE WHEN step < 4 THEN '{}'
    ELSE jsonb_build_object('error', jsonb_build_object('class', 'ValueError', 'message', 'refused ' || n,
        'traceback', repeat('  File "refusing.py", line 1' || chr(10), 100))) END
FROM timeline_scheduledtask CROSS JOIN generate_series(1, %(worn)s) n CROSS JOIN (VALUES (1, 'retryable', 'available'),
    (2, 'available', 'pending'), (3, 'pending', 'active'), (4, 'active', 'retryable')) AS told (step, was, becomes)
WHERE occurrence = 'worn';
INSERT INTO timeline_step (origin, name, attempt, kind, recorded_at, seconds, digest, code, result)
SELECT id, 'step ' || n, n, CASE WHEN n < %(worn)s THEN 'done' ELSE 'begun' END,
    now() - (%(worn)s - n) * interval '10 minutes' + interval '3 seconds', 0.1, '', '', jsonb_build_object('said', repeat('x', 5000))
FROM timeline_scheduledtask CROSS JOIN generate_series(1, %(worn)s) n WHERE occurrence = 'worn';

-- %(bookings)s runs of a machine, in many states, with what led there.
INSERT INTO portal_booking (reference, name, email, latest_hour, offers, slot, hold, has_documents, has_paid, search_until,
    created_at, state)
SELECT 'B' || n, 'Ada', 'ada@example.com', 20, '[]', '', '', false, false, now() + interval '9 days', now(),
    (ARRAY['OPERATOR_ESCALATED', 'AUTH_CAPTCHA_REQUIRED', 'NO_SLOT', 'CHOICE_REQUIRED', 'QUEUED', 'SEARCHING',
        'PAYMENT_REQUIRED', 'RETRY_SCHEDULED'])[n %% 8 + 1]
FROM generate_series(1, %(bookings)s) n;
INSERT INTO timeline_timelinerun (id, timeline, entity_label, entity_id, key, params, started_at, end_code, end_reason, once,
    is_cleared, pruned, state, state_at, back, moves)
SELECT (lpad(to_hex(50000000 + id), 12, '0') || '7' || substr(md5('booking' || id), 1, 19))::uuid, 'booking', 'portal.booking',
    id::text, '', '{}', now() - interval '2 hours', '', '', true, false, false, state, now() - id * interval '1 second', '', 3
FROM portal_booking;
INSERT INTO timeline_runentry (id, run_id, seq, at, from_state, to_state, back, event, actor)
SELECT (lpad(to_hex(60000000 + entity_id::int * 4 + seq), 12, '0') || '7'
    || substr(md5(seq || 'entry' || entity_id), 1, 19))::uuid, run.id, seq, state_at, was, CASE WHEN seq = 3 THEN run.state ELSE becomes END,
    '', event, ''
FROM timeline_timelinerun run
CROSS JOIN (VALUES (0, '', 'CREATED', ''), (1, 'CREATED', 'VALIDATING', 'go'), (2, 'VALIDATING', 'QUEUED', 'input.ok'),
    (3, 'QUEUED', '', 'portal.error')) AS told (seq, was, becomes, event)
WHERE timeline = 'booking';
INSERT INTO timeline_scheduledtask (id, run_id, task_key, occurrence, revision, state, seq, priority, queue, nominal_at,
    scheduled_at, anchor, definition_hash, payload, attempt, failures, lost, max_attempts, worker, error, fingerprint, awaits,
    awaits_key, awaits_label, awaits_id, awaits_other, limit_key, slot, held_until, reason_code, reason, actor, created_at,
    entity_label, entity_id)
SELECT (lpad(to_hex(50000000 + entity_id::int), 12, '0') || '7' || substr(md5('ahead' || entity_id), 1, 19))::uuid, id,
    'booking.search_over', '', 1, 'scheduled', 0, 0, 'default', now() + interval '9 days', now() + interval '9 days', '', '', '{}',
    0, 0, 0, 5, '', '', '', '', '', '', '', false, '', 0, '', '', '', '', now(), entity_label, entity_id
FROM timeline_timelinerun WHERE timeline = 'booking';

-- An event for each user and booking; what became of tasks in each hour of a week; what was asked in bulk, and held once.
INSERT INTO timeline_event (id, name, entity_label, entity_id, key, payload, actor, occurred_at, recorded_at)
SELECT (lpad(to_hex(70000000 + row_number() OVER ()), 12, '0') || '7' || substr(md5('event' || id), 1, 19))::uuid,
    CASE timeline WHEN 'booking' THEN 'input.ok' ELSE 'user.created' END, entity_label, entity_id, '', '{}', '', started_at, started_at
FROM timeline_timelinerun WHERE timeline IN ('trial', 'booking');
INSERT INTO timeline_figure (task_key, hour, started, completed, failed, discarded, cancelled, lateness, duration)
SELECT key, date_trunc('hour', now()) - hours * interval '1 hour', 100, 90, 5, 5, 0, '[1,2,3,4,5,6,7,8,9,10,11,12,13,14]',
    '[1,2,3,4,5,6,7,8,9,10,11,12,13,14]'
FROM generate_series(0, 170) hours CROSS JOIN (SELECT DISTINCT task_key AS key FROM timeline_scheduledtask) keys;
INSERT INTO timeline_bulkaction (id, action, filters, reason, asker, actor, created_at, matched, done, skipped, is_stopped,
    stopped_by, ended_at)
SELECT (lpad(to_hex(n), 12, '0') || '7' || substr(md5('bulk' || n), 1, 19))::uuid, 'cancel', '{"timeline": "trial"}', 'wrong', '1',
    'staff', now(), 100000, n * 100, '{}', false, '', CASE WHEN n > 3 THEN now() END
FROM generate_series(1, 200) n;
INSERT INTO timeline_hold (id, scope, target, names, "then", reason, actor, created_at, lifted_at, released_by, release_reason,
    settled, released_at, entity_label, entity_id)
SELECT (lpad(to_hex(n), 12, '0') || '7' || substr(md5('hold' || n), 1, 19))::uuid, 'entity', '',
    ('[["accounts.user", "' || n || '"]]')::jsonb, 'run', 'they asked for it', 'staff', now() - interval '1 day',
    CASE WHEN n > 40 THEN now() END, '', '', 0, CASE WHEN n > 40 THEN now() END, 'accounts.user', n::text
FROM generate_series(1, 400) n;
INSERT INTO timeline_hold (id, scope, target, names, "then", reason, actor, created_at, released_by, release_reason,
    park_above, park_within, settled, entity_label, entity_id)
VALUES (gen_random_uuid(), 'task', 'trial.expire', '[]', 'run', 'more than 100 within an hour', '', now(), '', '', 100,
    interval '1 hour', 0, '', '');
INSERT INTO timeline_webhooks_endpoint (id, url, description, topics, ordered, secret, previous_secret, created_at, failures,
    disabled_code, disabled_reason)
SELECT (lpad(to_hex(n), 12, '0') || '7' || substr(md5('to' || n), 1, 19))::uuid, 'https://receiver' || n || '.example/hook', '',
    '["booking"]', '', '', '', now(), 0, '', '' FROM generate_series(1, 8) n;
INSERT INTO timeline_webhooks_delivery (endpoint_id, source, topic, order_key, body, state, code, attempts, created_at, due_at,
    give_up_at, ended_at, error, entity_label, entity_id, status)
SELECT endpoint.id, gen_random_uuid(), 'booking.BOOKED', '', '{"type": "booking.BOOKED"}', state, '', 1, at, at,
    at + interval '3 days', CASE WHEN state <> 'waiting' THEN at END, '', 'portal.booking', n::text, 200
FROM timeline_webhooks_endpoint endpoint CROSS JOIN generate_series(1, %(deliveries)s / 8) n
CROSS JOIN LATERAL (SELECT now() - n * interval '1 minute' AS at, CASE WHEN n %% 50 = 0 THEN 'failed' WHEN n < 5 THEN 'waiting'
    ELSE 'delivered' END AS state) told ORDER BY n DESC;
INSERT INTO timeline_webhooks_attempt (delivery_id, number, at, duration_ms, status, answer, error)
SELECT id, 1, created_at, 20, 200, 'ok', '' FROM timeline_webhooks_delivery;
INSERT INTO timeline_worker (worker, seen_at) SELECT 'host:' || n, now() FROM generate_series(1, 20) n;
