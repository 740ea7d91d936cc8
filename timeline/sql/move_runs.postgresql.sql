-- Moves runs of machines, with their entries: see function_move_runs, which migrate puts.
SELECT timeline_move_runs(%(moves)s::json, %(ids)s::uuid[], %(at)s::timestamptz, %(event)s, %(actor)s)
