-- The first that are due of an endpoint. Put together with those of others; so its parameters have no names.
SELECT id FROM (
    SELECT id FROM timeline_webhooks_delivery
    WHERE endpoint_id = %s AND state = 'waiting' AND due_at <= %s
        AND (leased_until IS NULL OR leased_until < {machine_now})
    ORDER BY due_at, id
    LIMIT %s
) AS first
