-- Write the log of the rows that were "changed": one entry for each move, or one for a change that is no move. If a change
-- makes two moves, the last entry has the reason and the detail.
    INSERT INTO timeline_logentry (task_id, seq, at, from_state, to_state, attempt, actor, reason_code, reason, detail)
    SELECT id, seq - 1, {at}, from_state, via, attempt - CASE state WHEN 'active' THEN 1 ELSE 0 END, '', '', '', '{}'{json}  -- if via
    FROM changed  -- if via
    WHERE via IS NOT NULL  -- if via
    UNION ALL  -- if via
    SELECT id, seq, {at},
        COALESCE(via, from_state),  -- if via
        from_state,  -- if not via
        state, attempt,
        COALESCE(said_by, ''), COALESCE(said_code, ''), COALESCE(said, ''),  -- if reason_code
        '', '', '',  -- if not reason_code
        COALESCE(detail, '{}'){json}  -- if detail
        '{}'{json}  -- if not detail
    FROM changed
