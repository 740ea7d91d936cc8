-- What each trigger does when its condition holds: refuse, with the trigger's own text.
CREATE OR REPLACE FUNCTION timeline_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = TG_ARGV[0], ERRCODE = 'check_violation';
END
$$
