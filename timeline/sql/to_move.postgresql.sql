-- The open runs of machines of one entity, and the rows that they are planned from: see function_to_move, which migrate puts.
SELECT of_run::text, of_task::text
FROM timeline_to_move(%(label)s, %(id)s, %(timelines)s::text[], %(others)s::text[])
