-- Refuses a move that no edge stands for. A condition of a trigger cannot look into another table.
CREATE OR REPLACE FUNCTION timeline_refuse_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.ended_at IS NOT NULL
        OR OLD.state = ''
        OR NEW.moves <> OLD.moves + 1
        OR (NEW.state <> OLD.state AND NOT EXISTS (
            SELECT FROM timeline_edge
            WHERE timeline = OLD.timeline AND from_state = OLD.state AND to_state = NEW.state
        ))
    THEN
        RAISE EXCEPTION USING MESSAGE = 'timeline: this machine has no such move', ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$
