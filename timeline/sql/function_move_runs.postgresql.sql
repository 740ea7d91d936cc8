-- Move any number of runs of machines, and write their entries. The caller has locked the runs. A run is moved only if it still
-- has the state and the number of moves that were read. Returns the ids of the runs that have moved.
-- The JSON has what differs between the runs; the time, the event and the actor are the same for all. The ids are given a
-- second time, so that the primary key finds the runs.
-- This is a function because PostgreSQL keeps its plan. Making the plan takes as long as a move.
CREATE OR REPLACE FUNCTION timeline_move_runs(
    its_moves json, its_ids uuid[], its_at timestamptz, its_event text, its_actor text
) RETURNS SETOF uuid LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    WITH moved AS (
        UPDATE timeline_timelinerun AS run
        SET state = move.to_state, state_at = its_at, back = move.back, moves = move.seq
        FROM json_to_recordset(its_moves) AS move(
            id uuid, run uuid, seq integer, from_state text, to_state text, back text, cause uuid
        )
        WHERE run.id = move.run
            AND run.id = ANY(its_ids)
            AND run.state = move.from_state
            AND run.moves = move.seq - 1
            AND run.ended_at IS NULL
        RETURNING move.*
    ),
    entered AS (
        INSERT INTO timeline_runentry (id, run_id, seq, at, from_state, to_state, back, event, cause_id, actor)
        SELECT moved.id, moved.run, moved.seq, its_at, moved.from_state, moved.to_state, moved.back, its_event, moved.cause, its_actor
        FROM moved
    )
    SELECT moved.run FROM moved;
END
$$
