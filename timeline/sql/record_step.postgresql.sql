-- Record a step, while the attempt is its worker's: see function_record_step, which migrate puts. In a transaction that has locked
-- something else, the task's row is not waited for for long. A transaction that ends with it is committed in the same trip. Gives
-- what the database has made of the result.
SELECT stored
FROM timeline_record_step(  -- if not last
FROM timeline_record_last_step(  -- if last
    %(origin)s, %(name)s, %(task)s, %(attempt)s, %(kind)s, %(at)s, %(seconds)s, %(digest)s, %(code)s, %(result)s,
    NULL  -- if not within
    %(patience)s  -- if within
) AS step(stored)
; COMMIT  -- if last
