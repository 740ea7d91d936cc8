-- One write for any number of tasks, with its log entries: each element of the JSON array is one change, guarded by the state
-- and attempt it was decided on. What an element leaves out stays as it is. The ids stand in an array of their own, so that
-- the primary key finds the rows whatever the statistics say of states that live for milliseconds.
WITH change AS MATERIALIZED (
    SELECT *
    FROM json_to_recordset(%(changes)s::json) AS change(
        id uuid,
        from_state text,
        via text,
        to_state text,
        from_attempt integer,
        moves integer,
        failures integer,
        lost integer,
        scheduled_at timestamptz,
        nominal_at timestamptz,
        anchor text,
        anchor_value timestamptz,
        expires_at timestamptz,
        definition_hash text,
        claim_token uuid,
        lease interval,
        worker text,
        result text,
        error text,
        reason_code text,
        reason text,
        actor text,
        detail text
    )
),
changed AS (
    UPDATE timeline_scheduledtask AS task
    SET state = change.to_state,
        seq = task.seq + GREATEST(change.moves, 1),
        attempt = task.attempt + CASE WHEN change.to_state = 'active' AND change.moves > 0 THEN 1 ELSE 0 END,
        failures = task.failures + COALESCE(change.failures, 0),
        lost = task.lost + COALESCE(change.lost, 0),
        scheduled_at = COALESCE(change.scheduled_at, task.scheduled_at),
        nominal_at = COALESCE(change.nominal_at, task.nominal_at),
        anchor = COALESCE(change.anchor, task.anchor),
        anchor_value = COALESCE(change.anchor_value, task.anchor_value),
        expires_at = CASE WHEN change.nominal_at IS NULL THEN task.expires_at ELSE change.expires_at END,
        definition_hash = COALESCE(change.definition_hash, task.definition_hash),
        claim_token = CASE change.to_state
            WHEN 'pending' THEN COALESCE(change.claim_token, task.claim_token)
            WHEN 'active' THEN task.claim_token
        END,
        lease_expires_at = CASE WHEN change.to_state IN ('pending', 'active')
            THEN clock_timestamp() + COALESCE(change.lease, %(lease)s::interval) END,
        worker = COALESCE(change.worker, task.worker),
        result = COALESCE(change.result::jsonb, task.result),
        error = COALESCE(change.error, task.error),
        reason_code = COALESCE(change.reason_code, task.reason_code),
        reason = CASE WHEN change.reason_code IS NULL THEN task.reason ELSE COALESCE(change.reason, '') END,
        actor = CASE WHEN change.reason_code IS NULL THEN task.actor ELSE COALESCE(change.actor, '') END,
        started_at = CASE WHEN change.to_state = 'active' AND change.moves > 0
            THEN %(at)s::timestamptz ELSE task.started_at END,
        finished_at = CASE WHEN change.to_state IN ({final}) THEN %(at)s::timestamptz END
    FROM change
    WHERE task.id = ANY(%(ids)s::uuid[])
        AND task.id = change.id
        AND task.state = change.from_state
        AND task.attempt = change.from_attempt
    RETURNING task.id, task.state, task.seq, task.attempt, task.failures, task.lost, task.scheduled_at, task.nominal_at,
        task.anchor, task.anchor_value, task.expires_at, task.definition_hash, task.claim_token, task.lease_expires_at,
        task.worker, task.result, task.error, task.reason_code, task.reason, task.actor, task.started_at, task.finished_at
),
logged AS (
    INSERT INTO timeline_logentry (
        task_id, seq, at, from_state, to_state, attempt, actor, reason_code, reason, detail
    )
    SELECT change.id, changed.seq - 1, %(at)s::timestamptz, change.from_state, change.via, change.from_attempt, '', '', '', '{}'::jsonb
    FROM change
    JOIN changed ON changed.id = change.id
    WHERE change.via IS NOT NULL
    UNION ALL
    SELECT change.id, changed.seq, %(at)s::timestamptz, COALESCE(change.via, change.from_state), change.to_state,
        changed.attempt, COALESCE(change.actor, ''), COALESCE(change.reason_code, ''), COALESCE(change.reason, ''),
        COALESCE(change.detail, '{}')::jsonb
    FROM change
    JOIN changed ON changed.id = change.id
)
SELECT * FROM changed
