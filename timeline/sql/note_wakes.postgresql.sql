-- Note that something happened to some entities: to those for whose events tasks of other entities wait. Without a name, any
-- event that they wait for counts. Each entity is looked up separately, in the index of the tasks that wait for events.
INSERT INTO timeline_wake (entity_label, entity_id, name, key)
SELECT entity.label, entity.id, %(name)s::text, %(key)s::text
FROM unnest(%(labels)s::text[], %(ids)s::text[]) AS entity(label, id)
WHERE EXISTS (
    SELECT 1
    FROM timeline_scheduledtask
    WHERE awaits_label = entity.label
        AND awaits_id = entity.id
        AND awaits > ''
        AND state IN ({waiting})
        AND awaits_other
        AND (%(name)s::text = '' OR %(name)s::text = ANY(string_to_array(awaits, ' ')) AND awaits_key IN ('', %(key)s::text))
)
