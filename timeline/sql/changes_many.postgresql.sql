-- Each element of the JSON array is one change.
        SELECT *
        FROM json_to_recordset(%(changes)s::json) AS element(
            id uuid,
            from_state text,
            via text,  -- if via
            to_state text,
            from_attempt integer,
            moves integer,
            failures integer,  -- if failures
            lost integer,  -- if lost
            scheduled_at timestamptz,  -- if scheduled_at
            nominal_at timestamptz,  -- if nominal_at
            anchor text,  -- if nominal_at
            anchor_value timestamptz,  -- if nominal_at
            anchor_date date,  -- if nominal_at
            expires_at timestamptz,  -- if nominal_at
            definition_hash text,  -- if definition_hash
            claim_token uuid,  -- if leased
            lease interval,  -- if leased
            worker text,  -- if worker
            result text,  -- if result
            error text,  -- if error
            detail text,  -- if detail
            reason_code text,
            reason text,
            actor text
        )
