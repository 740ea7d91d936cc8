-- Take a key: a new one, or one whose answer need not be kept any longer.
INSERT INTO timeline_answer (key, fingerprint, status, headers, body, made_at)
VALUES (%(key)s, %(fingerprint)s, 0, '{}', '', strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now'))
ON CONFLICT (key) DO UPDATE
SET fingerprint = excluded.fingerprint, status = excluded.status, headers = excluded.headers, body = excluded.body,
    made_at = excluded.made_at
WHERE timeline_answer.made_at < strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', -%(kept)s || ' seconds')
