-- Moves runs of machines, any number, each from where it was read to be, with its entry. The caller has locked them. What is not
-- given back has not moved. All of a move is in the JSON, but for when.
WITH moved AS (
    UPDATE timeline_timelinerun AS run
    SET state = move.to_state, state_at = %(at)s, back = move.back, moves = move.seq
    FROM json_to_recordset(%(moves)s::json) AS move(
        id uuid, run uuid, seq integer, from_state text, to_state text, back text, cause uuid
    )
    WHERE run.id = move.run
        AND run.id = ANY(%(ids)s)
        AND run.state = move.from_state
        AND run.moves = move.seq - 1
        AND run.ended_at IS NULL
    RETURNING move.*
),
entered AS (
    INSERT INTO timeline_runentry (id, run_id, seq, at, from_state, to_state, back, event, cause_id, actor)
    SELECT id, run, seq, %(at)s, from_state, to_state, back, %(event)s, cause, %(actor)s
    FROM moved
)
SELECT run FROM moved
