-- Move any number of runs of machines. A run is moved only if it still has the state and the number of moves that were read.
-- Returns the ids of the runs that have moved. The entries are written next, by enter_runs.
UPDATE timeline_timelinerun AS run
SET state = json_extract(move.value, '$.to_state'),
    state_at = %(at)s,
    back = json_extract(move.value, '$.back'),
    moves = json_extract(move.value, '$.seq')
FROM json_each(%(moves)s) AS move
WHERE run.id = json_extract(move.value, '$.run')
    AND run.state = json_extract(move.value, '$.from_state')
    AND run.moves = (json_extract(move.value, '$.seq')) - 1
    AND run.ended_at IS NULL
RETURNING id
