-- One write for any number of tasks: each element of the JSON array is one change, guarded by the state and attempt it was
-- decided on. What an element leaves out stays as it is. The log entries follow: log.sqlite.sql.
UPDATE timeline_scheduledtask AS task
SET state = change.to_state,
    seq = task.seq + MAX(change.moves, 1),
    attempt = task.attempt + (change.to_state = 'active' AND change.moves > 0),
    failures = task.failures + COALESCE(change.failures, 0),
    lost = task.lost + COALESCE(change.lost, 0),
    scheduled_at = COALESCE(change.scheduled_at, task.scheduled_at),
    nominal_at = COALESCE(change.nominal_at, task.nominal_at),
    anchor = COALESCE(change.anchor, task.anchor),
    anchor_value = CASE WHEN change.nominal_at IS NULL THEN task.anchor_value ELSE change.anchor_value END,
    anchor_date = CASE WHEN change.nominal_at IS NULL THEN task.anchor_date ELSE change.anchor_date END,
    expires_at = CASE WHEN change.nominal_at IS NULL THEN task.expires_at ELSE change.expires_at END,
    definition_hash = COALESCE(change.definition_hash, task.definition_hash),
    claim_token = CASE change.to_state
        WHEN 'pending' THEN COALESCE(change.claim_token, task.claim_token)
        WHEN 'active' THEN task.claim_token
    END,
    lease_expires_at = CASE WHEN change.to_state IN ('pending', 'active')
        THEN strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', COALESCE(change.lease, %(usual_lease)s)) END,
    sent_at = CASE change.to_state WHEN 'pending' THEN strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now') ELSE task.sent_at END,
    worker = COALESCE(change.worker, task.worker),
    result = COALESCE(change.result, task.result),
    error = COALESCE(change.error, task.error),
    reason_code = COALESCE(change.reason_code, task.reason_code),
    reason = CASE WHEN change.reason_code IS NULL THEN task.reason ELSE COALESCE(change.reason, '') END,
    actor = CASE WHEN change.reason_code IS NULL THEN task.actor ELSE COALESCE(change.actor, '') END,
    started_at = CASE WHEN change.to_state = 'active' AND change.moves > 0 THEN %(at)s ELSE task.started_at END,
    finished_at = CASE WHEN change.to_state IN ({final}) THEN %(at)s END
FROM (
    SELECT json_extract(value, '$.id') AS id,
        json_extract(value, '$.from_state') AS from_state,
        json_extract(value, '$.to_state') AS to_state,
        json_extract(value, '$.from_attempt') AS from_attempt,
        json_extract(value, '$.moves') AS moves,
        json_extract(value, '$.failures') AS failures,
        json_extract(value, '$.lost') AS lost,
        json_extract(value, '$.scheduled_at') AS scheduled_at,
        json_extract(value, '$.nominal_at') AS nominal_at,
        json_extract(value, '$.anchor') AS anchor,
        json_extract(value, '$.anchor_value') AS anchor_value,
        json_extract(value, '$.anchor_date') AS anchor_date,
        json_extract(value, '$.expires_at') AS expires_at,
        json_extract(value, '$.definition_hash') AS definition_hash,
        json_extract(value, '$.claim_token') AS claim_token,
        json_extract(value, '$.lease') AS lease,
        json_extract(value, '$.worker') AS worker,
        json_extract(value, '$.result') AS result,
        json_extract(value, '$.error') AS error,
        json_extract(value, '$.reason_code') AS reason_code,
        json_extract(value, '$.reason') AS reason,
        json_extract(value, '$.actor') AS actor
    FROM json_each(%(changes)s)
) AS change
WHERE task.id = change.id
    AND task.state = change.from_state
    AND task.attempt = change.from_attempt
RETURNING id, state, seq, attempt, failures, lost, scheduled_at, nominal_at, anchor, anchor_value, anchor_date, expires_at,
    definition_hash, claim_token, lease_expires_at, sent_at, worker, result, error, reason_code, reason, actor,
    started_at, finished_at
