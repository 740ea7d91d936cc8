-- One change: plain values, which cost the planner less than an array.
        SELECT
            %(id)s::uuid AS id,
            %(from_state)s::text AS from_state,
            %(via)s::text AS via,  -- if via
            %(to_state)s::text AS to_state,
            %(from_attempt)s::integer AS from_attempt,
            %(moves)s::integer AS moves,
            %(failures)s::integer AS failures,  -- if failures
            %(lost)s::integer AS lost,  -- if lost
            %(scheduled_at)s::timestamptz AS scheduled_at,  -- if scheduled_at
            %(nominal_at)s::timestamptz AS nominal_at,  -- if nominal_at
            %(anchor)s::text AS anchor,  -- if nominal_at
            %(anchor_value)s::timestamptz AS anchor_value,  -- if nominal_at
            %(anchor_date)s::date AS anchor_date,  -- if nominal_at
            %(expires_at)s::timestamptz AS expires_at,  -- if nominal_at
            %(definition_hash)s::text AS definition_hash,  -- if definition_hash
            %(claim_token)s::uuid AS claim_token,  -- if leased
            %(lease)s::interval AS lease,  -- if leased
            %(worker)s::text AS worker,  -- if worker
            %(result)s::text AS result,  -- if result
            %(error)s::text AS error,  -- if error
            %(detail)s::text AS detail,  -- if detail
            %(reason_code)s::text AS reason_code,
            %(reason)s::text AS reason,
            %(actor)s::text AS actor
