-- Record a step, if the attempt still belongs to its worker; see function_record_step, which migrate installs. In a
-- transaction, it waits only a short time for the task's row.
-- If the transaction ends with the step, it is committed in the same trip. Returns the result as the database has stored it.
SELECT stored
FROM timeline_record_step(  -- if not last
FROM timeline_record_last_step(  -- if last
    %(origin)s, %(name)s, %(task)s, %(attempt)s, %(kind)s, %(at)s, %(seconds)s, %(digest)s, %(code)s, %(result)s,
    NULL  -- if not within
    %(patience)s  -- if within
) AS step(stored)
; COMMIT  -- if last
