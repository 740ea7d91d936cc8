-- Record how far a loop has come; see function_record_place, which migrate installs. In a transaction, it waits only a short
-- time for the task's row, as in record_step. Returns the result as the database has stored it.
SELECT stored
FROM timeline_record_place(
    %(origin)s, %(name)s, %(task)s, %(attempt)s, %(kind)s, %(at)s, %(seconds)s, %(digest)s, %(code)s, %(result)s, %(place)s,
    %(done)s, %(total)s, %(done_by)s,
    NULL  -- if not within
    %(patience)s  -- if within
)
