-- Each element of the JSON array is one change.
        SELECT *
        FROM json_to_recordset(%(changes)s::json) AS element(
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
