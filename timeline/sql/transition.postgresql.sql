-- One write for any number of tasks, with its log entries. Each change is guarded by the state and attempt it was decided on;
-- what it leaves out stays as it is. The ids stand in an array of their own, so that the primary key finds the rows whatever
-- the statistics say of states that live for milliseconds; the state is compared as an expression, lest the planner walk the
-- index of all rows in it. What no change of a call touches is left out of its statement: half of the time of a single change
-- goes into planning and preparing. Rows that somebody else has locked are waited for, or passed over. Several are locked
-- first, in the lock order: two writes of the same rows would else wait for each other.
WITH
held AS MATERIALIZED (  -- if held
    SELECT id  -- if held
    FROM timeline_scheduledtask  -- if held
    WHERE id = ANY(%(ids)s::uuid[])  -- if held
    ORDER BY id::text  -- if held
    FOR NO KEY UPDATE  -- if held
        SKIP LOCKED  -- if pass_over
),  -- if held
changed AS (
    UPDATE timeline_scheduledtask AS task
    SET state = change.to_state,
        seq = task.seq + GREATEST(change.moves, 1),
        attempt = task.attempt + CASE WHEN change.to_state = 'active' AND change.moves > 0 THEN 1 ELSE 0 END,  -- if active
        failures = task.failures + COALESCE(change.failures, 0),  -- if failures
        lost = task.lost + COALESCE(change.lost, 0),  -- if lost
        scheduled_at = COALESCE(change.scheduled_at, task.scheduled_at),  -- if scheduled_at
        nominal_at = COALESCE(change.nominal_at, task.nominal_at),  -- if nominal_at
        anchor = COALESCE(change.anchor, task.anchor),  -- if nominal_at
        anchor_value = CASE WHEN change.nominal_at IS NULL THEN task.anchor_value ELSE change.anchor_value END,  -- if nominal_at
        anchor_date = CASE WHEN change.nominal_at IS NULL THEN task.anchor_date ELSE change.anchor_date END,  -- if nominal_at
        expires_at = CASE WHEN change.nominal_at IS NULL THEN task.expires_at ELSE change.expires_at END,  -- if nominal_at
        definition_hash = COALESCE(change.definition_hash, task.definition_hash),  -- if definition_hash
        claim_token = CASE change.to_state  -- if leased
            WHEN 'pending' THEN COALESCE(change.claim_token, task.claim_token)  -- if leased
            WHEN 'active' THEN task.claim_token  -- if leased
        END,  -- if leased
        lease_expires_at = CASE WHEN change.to_state IN ({leased})  -- if leased
            THEN clock_timestamp() + COALESCE(change.lease, %(usual_lease)s::interval) END,  -- if leased
        sent_at = CASE change.to_state WHEN 'pending' THEN clock_timestamp() ELSE task.sent_at END,  -- if leased
        claim_token = NULL,  -- if not leased
        lease_expires_at = NULL,  -- if not leased
        worker = COALESCE(change.worker, task.worker),  -- if worker
        result = COALESCE(change.result::jsonb, task.result),  -- if result
        error = COALESCE(change.error, task.error),  -- if error
        reason_code = COALESCE(change.reason_code, task.reason_code),
        reason = CASE WHEN change.reason_code IS NULL THEN task.reason ELSE COALESCE(change.reason, '') END,
        actor = CASE WHEN change.reason_code IS NULL THEN task.actor ELSE COALESCE(change.actor, '') END,
        started_at = CASE WHEN change.to_state = 'active' AND change.moves > 0  -- if active
            THEN %(at)s::timestamptz ELSE task.started_at END,  -- if active
        finished_at = CASE WHEN change.to_state IN ({final}) THEN %(at)s::timestamptz END
    FROM (
{changes}
    ) AS change
    WHERE task.id = ANY(%(ids)s::uuid[])  -- if not held
    WHERE task.id = ANY(ARRAY(SELECT id FROM held))  -- if held
        AND task.id = change.id
        AND task.state || '' = change.from_state
        AND task.attempt = change.from_attempt
    RETURNING {task_columns}, task.attempt AS log_attempt, change.from_state, change.from_attempt,
        change.via,  -- if via
        change.detail,  -- if detail
        change.actor AS log_actor, change.reason_code AS log_code, change.reason AS log_reason
),
logged AS (
    INSERT INTO timeline_logentry (
        task_id, seq, at, from_state, to_state, attempt, actor, reason_code, reason, detail
    )
    SELECT id, seq - 1, %(at)s::timestamptz, from_state, via, from_attempt, '', '', '', '{}'::jsonb  -- if via
    FROM changed  -- if via
    WHERE via IS NOT NULL  -- if via
    UNION ALL  -- if via
    SELECT id, seq, %(at)s::timestamptz,
        COALESCE(via, from_state),  -- if via
        from_state,  -- if not via
        state, log_attempt, COALESCE(log_actor, ''), COALESCE(log_code, ''), COALESCE(log_reason, ''),
        COALESCE(detail, '{}')::jsonb  -- if detail
        '{}'::jsonb  -- if not detail
    FROM changed
)
SELECT {columns}
FROM changed
