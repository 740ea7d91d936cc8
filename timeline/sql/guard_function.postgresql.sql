-- The function of several triggers: refuse, with the text that the trigger gives.
CREATE OR REPLACE FUNCTION timeline_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = TG_ARGV[0], ERRCODE = 'check_violation';
END
$$
