-- Refuses to delete a row that one of the table given names in the column given.
CREATE OR REPLACE FUNCTION timeline_keep() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    named boolean;
BEGIN
    EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE %I = $1)', TG_ARGV[0], TG_ARGV[1]) INTO named USING OLD.id;
    IF named THEN
        RAISE EXCEPTION USING
            MESSAGE = format('timeline: a row of %s still names this one of %s', TG_ARGV[0], TG_TABLE_NAME),
            ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END
$$
