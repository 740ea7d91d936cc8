-- All of a move of one entity: see function_move_at_once, which migrate puts.
SELECT is_met, moved_runs, told::text, made
FROM timeline_move_at_once(
    %(event_row)s::json, %(moves)s::json, %(ids)s::uuid[], %(changes)s::json, %(tasks_changed)s::uuid[], %(tasks)s::json,
    %(at)s::timestamptz, %(event)s, %(actor)s
)
