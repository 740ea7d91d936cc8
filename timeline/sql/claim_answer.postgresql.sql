-- Take a key: one that is new, or whose answer is no longer kept. Waits for whoever has taken it and has not committed yet.
INSERT INTO timeline_answer (key, fingerprint, status, headers, body, made_at)
VALUES (%(key)s, %(fingerprint)s, 0, '{}', '', clock_timestamp())
ON CONFLICT (key) DO UPDATE
SET fingerprint = excluded.fingerprint, status = excluded.status, headers = excluded.headers, body = excluded.body,
    made_at = excluded.made_at
WHERE timeline_answer.made_at < excluded.made_at - %(kept)s::interval
