"""An attempt: begin, look, call, record."""
