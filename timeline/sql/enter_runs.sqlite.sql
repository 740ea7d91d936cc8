-- Write the entries of runs that have moved; see move_runs.
INSERT INTO timeline_runentry (id, run_id, seq, at, from_state, to_state, back, event, cause_id, actor)
SELECT
    json_extract(value, '$.id'), json_extract(value, '$.run'), json_extract(value, '$.seq'), %(at)s,
    json_extract(value, '$.from_state'), json_extract(value, '$.to_state'), json_extract(value, '$.back'),
    %(event)s, json_extract(value, '$.cause'), %(actor)s
FROM json_each(%(moves)s)
