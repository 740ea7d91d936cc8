-- How the latest deliveries of an endpoint stand, of those written since a time. Put together with those of others; so its
-- parameters have no names.
SELECT * FROM (
    SELECT endpoint_id, state, count(*) AS many FROM (
        SELECT endpoint_id, state FROM timeline_webhooks_delivery
        WHERE endpoint_id = %s AND created_at >= %s
        ORDER BY created_at DESC
        LIMIT %s
    ) AS latest
    GROUP BY endpoint_id, state
) AS one
