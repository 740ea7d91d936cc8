-- Take a key: a new one, or one whose answer need not be kept any longer. If another transaction has taken it and is not
-- committed yet, wait for that transaction.
INSERT INTO timeline_answer (key, fingerprint, status, headers, body, made_at)
VALUES (%(key)s, %(fingerprint)s, 0, '{}', '', clock_timestamp())
ON CONFLICT (key) DO UPDATE
SET fingerprint = excluded.fingerprint, status = excluded.status, headers = excluded.headers, body = excluded.body,
    made_at = excluded.made_at
WHERE timeline_answer.made_at < excluded.made_at - %(kept)s::interval
