-- A statement as a function, so that PostgreSQL keeps its plan: see store/kept_statements.py, which puts the parts in.
-- Columns that it returns are variables, too: in the statement, their names mean columns.
CREATE OR REPLACE FUNCTION timeline_{name}({arguments}) RETURNS {returns} LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan {settings} AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
{statement};
END
$$
