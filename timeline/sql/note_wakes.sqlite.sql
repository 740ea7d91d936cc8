-- Note that something happened to some entities: to those for whose events tasks of other entities wait. Without a name, any
-- event that they wait for counts.
INSERT INTO timeline_wake (entity_label, entity_id, name, key)
SELECT json_extract(entity.value, '$[0]'), json_extract(entity.value, '$[1]'), %(name)s, %(key)s
FROM json_each(%(entities)s) AS entity
WHERE EXISTS (
    SELECT 1
    FROM timeline_scheduledtask
    WHERE awaits_label = json_extract(entity.value, '$[0]')
        AND awaits_id = json_extract(entity.value, '$[1]')
        AND awaits > ''
        AND state IN ({waiting})
        AND awaits_other
        AND (%(name)s = '' OR instr(' ' || awaits || ' ', ' ' || %(name)s || ' ') > 0 AND awaits_key IN ('', %(key)s))
)
