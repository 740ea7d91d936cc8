-- The rules: what a change does to each column of its task. Both databases and all statements that move tasks share them.
-- "task" is the row as it was. A value that "change" does not have is NULL. The column then stays as it is, with two
-- exceptions: a new nominal_at also replaces the columns that belong to it, and a task without a lease has no claim_token and
-- no lease_expires_at.
-- A line with a condition is part of the statement only if a change needs it: a change has a value of that name, or it leads to
-- a state of that name. The condition "ends" stands for any final state.
    seq = task.seq + CASE WHEN change.via IS NULL THEN 1 ELSE 2 END,  -- if via
    seq = task.seq + 1,  -- if not via
    attempt = task.attempt + CASE WHEN change.to_state = 'active' AND change.from_state <> 'active' THEN 1 ELSE 0 END,  -- if active
    failures = task.failures + COALESCE(change.failures, 0),  -- if failures
    lost = task.lost + COALESCE(change.lost, 0),  -- if lost
    scheduled_at = COALESCE(change.scheduled_at, task.scheduled_at),  -- if scheduled_at
    nominal_at = COALESCE(change.nominal_at, task.nominal_at),  -- if nominal_at
    planned_at = CASE WHEN change.nominal_at IS NULL THEN task.planned_at ELSE change.planned_at END,  -- if nominal_at
    anchor = COALESCE(change.anchor, task.anchor),  -- if nominal_at
    anchor_value = CASE WHEN change.nominal_at IS NULL THEN task.anchor_value ELSE change.anchor_value END,  -- if nominal_at
    anchor_date = CASE WHEN change.nominal_at IS NULL THEN task.anchor_date ELSE change.anchor_date END,  -- if nominal_at
    expires_at = CASE WHEN change.nominal_at IS NULL THEN task.expires_at ELSE change.expires_at END,  -- if nominal_at
    definition_hash = COALESCE(change.definition_hash, task.definition_hash),  -- if definition_hash
    claim_token = CASE change.to_state  -- if lease
        WHEN 'pending' THEN COALESCE(change.claim_token, task.claim_token)  -- if lease
        WHEN 'active' THEN task.claim_token  -- if lease
    END,  -- if lease
    claim_token = NULL,  -- if not lease
    lease_expires_at = {machine_now_and_lease},  -- if lease
    lease_expires_at = NULL,  -- if not lease
    sent_at = CASE change.to_state WHEN 'pending' THEN {machine_now} ELSE task.sent_at END,  -- if pending
    worker = COALESCE(change.worker, task.worker),  -- if worker
    result = COALESCE(change.result{json}, task.result),  -- if result
    error = COALESCE(change.error, task.error),  -- if error
    fingerprint = COALESCE(change.fingerprint, task.fingerprint),  -- if fingerprint
    awaits = CASE WHEN change.to_state = 'retryable' AND change.from_state = 'active' THEN COALESCE(change.awaits, '') ELSE task.awaits END,  -- if retryable
    awaits_key = COALESCE(change.awaits_key, task.awaits_key),  -- if awaits
    awaits_label = COALESCE(change.awaits_label, task.awaits_label),  -- if awaits
    awaits_id = COALESCE(change.awaits_id, task.awaits_id),  -- if awaits
    awaits_other = COALESCE(change.awaits_other, task.awaits_other),  -- if awaits
    slot = CASE  -- if slot
        WHEN change.slot IS NOT NULL THEN change.slot  -- if slot
        WHEN change.to_state = 'completed' THEN 0  -- if slot
        WHEN change.to_state = 'retryable' AND task.held_until = 'attempt' THEN 0  -- if slot
        WHEN change.to_state IN ({final}) AND NOT (  -- if slot
            task.held_until = 'opened+' OR (task.held_until = 'opened' AND change.from_state = 'active')  -- if slot
        ) THEN 0  -- if slot
        ELSE task.slot  -- if slot
    END,  -- if slot
    held_until = task.held_until || CASE  -- if slot
        WHEN change.to_state = 'retryable' AND change.from_state = 'active' AND change.slot IS NULL  -- if slot
            AND task.slot > 0 AND task.held_until IN ('end', 'opened') THEN '+'  -- if slot
        ELSE ''  -- if slot
    END,  -- if slot
    reason_code = COALESCE(change.reason_code, task.reason_code),  -- if reason_code
    reason = COALESCE(change.reason, task.reason),  -- if reason_code
    actor = COALESCE(change.actor, task.actor),  -- if reason_code
    started_at = CASE WHEN change.to_state = 'active' AND change.from_state <> 'active' THEN {at} ELSE task.started_at END,  -- if active
    finished_at = CASE WHEN change.to_state IN ({final}) THEN {at} END,  -- if ends
    state = change.to_state
