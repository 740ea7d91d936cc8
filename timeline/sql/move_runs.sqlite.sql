-- Moves runs of machines, any number, each from where it was read to be. Their entries follow: enter_runs.
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
