-- Move runs of machines, and write their entries; see function_move_runs, which migrate installs.
SELECT timeline_move_runs(%(moves)s::json, %(ids)s::uuid[], %(at)s::timestamptz, %(event)s, %(actor)s)
