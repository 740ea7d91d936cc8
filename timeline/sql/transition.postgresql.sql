-- One write for any number of tasks: each element of the JSON array is one change, guarded by the state and attempt it was
-- decided on. What an element leaves out stays as it is. The ids stand in an array of their own, so that the primary key
-- finds the rows whatever the statistics say of states that live for milliseconds.
UPDATE timeline_scheduledtask AS task
SET state = change.to_state,
    seq = task.seq + change.steps,
    attempt = task.attempt + CASE WHEN change.to_state = 'active' AND change.moves > 0 THEN 1 ELSE 0 END,
    failures = task.failures + change.failures,
    lost = task.lost + change.lost,
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
        THEN clock_timestamp() + change.lease END,
    worker = COALESCE(change.worker, task.worker),
    result = COALESCE(change.result::jsonb, task.result),
    error = COALESCE(change.error, task.error),
    reason_code = COALESCE(change.reason_code, task.reason_code),
    reason = CASE WHEN change.reason_code IS NULL THEN task.reason ELSE change.reason END,
    actor = CASE WHEN change.reason_code IS NULL THEN task.actor ELSE change.actor END,
    started_at = CASE WHEN change.to_state = 'active' AND change.moves > 0 THEN change.at ELSE task.started_at END,
    finished_at = CASE WHEN change.to_state IN ({final}) THEN change.at END
FROM jsonb_to_recordset(%(changes)s::jsonb) AS change(
    id uuid,
    from_state text,
    to_state text,
    from_attempt integer,
    steps integer,
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
    at timestamptz
)
WHERE task.id = ANY(%(ids)s::uuid[])
    AND task.id = change.id
    AND task.state = change.from_state
    AND task.attempt = change.from_attempt
RETURNING task.*
