-- Refuse to delete a row to which rows of another table refer. The trigger gives the table, its column, and optionally a
-- condition: then only rows that meet it count. The table is that of the same schema; if there is none, the one of this name.
CREATE OR REPLACE FUNCTION timeline_keep() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    named boolean;
BEGIN
    EXECUTE format(
        'SELECT EXISTS (SELECT FROM %s WHERE %I OPERATOR(pg_catalog.=) $1 AND %s)',
        coalesce(to_regclass(format('%I.%I', TG_TABLE_SCHEMA, TG_ARGV[0])), TG_ARGV[0]::regclass),
        TG_ARGV[1],
        coalesce(TG_ARGV[2], 'true')
    ) INTO named USING OLD.id;
    IF named THEN
        RAISE EXCEPTION USING
            MESSAGE = format('timeline: a row of %s still names this one of %s', TG_ARGV[0], TG_TABLE_NAME),
            ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END
$$
