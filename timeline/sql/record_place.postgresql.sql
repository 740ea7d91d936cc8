-- Record how far a loop has come: see function_record_place, which migrate puts. As in record_step, the task's row is not waited for
-- for long within a transaction. Gives the result as the database has it.
SELECT stored
FROM timeline_record_place(
    %(origin)s, %(name)s, %(task)s, %(attempt)s, %(kind)s, %(at)s, %(seconds)s, %(digest)s, %(code)s, %(result)s, %(place)s,
    %(done)s, %(total)s, %(done_by)s,
    NULL  -- if not within
    %(patience)s  -- if within
)
